/**
 * Streams on an intake whose broker hangs, dies and comes back.
 *
 * The process is real, and has to stop meanwhile.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startOutageWorld, type OutageWorld } from '../support/outage-world.ts';
import { openStream, type StreamClient } from '../support/stream-client.ts';

const WAIT = { timeout: 60_000, interval: 20 };
const TEST_TIMEOUT_MS = 240_000;
const AHEAD_MAX = 2_000;
const HEADERS = { Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}` };

let world: OutageWorld;
beforeEach(async () => {
  world = await startOutageWorld();
});
afterEach(() => world.close());

const line = (n: number) =>
  `${JSON.stringify({ type: 'track', userId: 'ann', event: `event-${n}` })}\n`;

const names = (count: number) => Array.from({ length: count }, (_, n) => `event-${n}`);

/**
 * Sends lines one after another until the stream ends or `stop` is called, and at most so many before they are
 * acknowledged: all sent lines have to be processed, too.
 */
function startSending(stream: StreamClient) {
  let isStopping = false;
  let sentCount = 0;
  void stream.ended.then(() => (isStopping = true));
  const run = async () => {
    while (!isStopping) {
      if (sentCount - acknowledged(stream) > AHEAD_MAX) {
        await Promise.race([stream.answered(), stream.ended]);
        continue;
      }
      const lines = Array.from({ length: 50 }, () => line(sentCount++)).join('');
      await stream.write(lines);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const running = run();
  return {
    sentCount: () => sentCount,
    async stop() {
      isStopping = true;
      await running;
    },
  };
}

const acknowledged = (stream: StreamClient): number => stream.answers.at(-1)?.line ?? 0;

const untilAcknowledged = (stream: StreamClient, more: number) => {
  const wanted = acknowledged(stream) + more;
  return vi.waitFor(() => expect(acknowledged(stream)).toBeGreaterThanOrEqual(wanted), WAIT);
};

test(
  'a broker that dies midway and comes back: the stream goes on, and all of it is processed once, in order',
  async () => {
    const intake = await world.startIntake();
    const stream = openStream(intake.url, HEADERS);
    const sending = startSending(stream);
    await untilAcknowledged(stream, 500);
    await world.killRedis();
    await untilAcknowledged(stream, 500);
    await world.restartRedis();
    await untilAcknowledged(stream, 500);
    await sending.stop();
    const end = await stream.end();
    expect(end).toMatchObject({ line: sending.sentCount(), end: 'complete', refused: 0 });
    await world.startConsuming();
    await vi.waitFor(() => expect(world.processed('ann')).toHaveLength(end.line), WAIT);
    expect(world.processed('ann')).toEqual(names(end.line));
  },
  TEST_TIMEOUT_MS,
);

test(
  'if the broker dies and intake has no disk buffer, a stream ends with the number of its durable lines',
  async () => {
    // A broker that confirms late would end the stream before it dies.
    const intake = await world.startIntake({
      INTAKE_SPILL_SIZE_BYTES_MAX: '0',
      INTAKE_COMMIT_DEADLINE_MS: '20000',
    });
    const stream = openStream(intake.url, HEADERS);
    const sending = startSending(stream);
    await untilAcknowledged(stream, 500);
    await world.killRedis();
    await stream.ended;
    await sending.stop();
    const end = stream.answers.at(-1);
    expect(end).toMatchObject({ end: 'overloaded' });
    expect(end?.retry_after_seconds).toBeGreaterThan(0);
    await world.restartRedis();
    await world.startConsuming();
    // Unacknowledged lines may have been taken too: the broker died with them in progress.
    await vi.waitFor(() => {
      expect(world.processed('ann').slice(0, end?.line)).toEqual(names(end?.line ?? 0));
    }, WAIT);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a broker that hangs holds the sender back, so memory stays small; all lines are taken when it wakes',
  async () => {
    const intake = await world.startIntake({ INTAKE_COMMIT_DEADLINE_MS: '60000' });
    const stream = openStream(intake.url, HEADERS);
    await stream.write(line(0));
    await untilAcknowledged(stream, 1);
    process.kill(world.redis.pid, 'SIGSTOP');
    const total = 400_000;
    let sentCount = 1;
    let lastProgressAtMs = performance.now();
    const sending = (async () => {
      while (sentCount < total) {
        const to = Math.min(total, sentCount + 1_000);
        let lines = '';
        for (; sentCount < to; sentCount++) lines += line(sentCount);
        await stream.write(lines);
        lastProgressAtMs = performance.now();
      }
    })();
    await vi.waitFor(
      () => expect(performance.now() - lastProgressAtMs).toBeGreaterThan(1_000),
      // Less than the deadline, after which the lines go to the disk.
      { ...WAIT, timeout: 40_000 },
    );
    // Of 22 MB: one piece and two groups in intake, the rest in the kernel's buffers on both sides.
    expect(sentCount).toBeLessThan(total * 0.75);
    expect(acknowledged(stream)).toBe(1);
    process.kill(world.redis.pid, 'SIGCONT');
    await sending;
    expect(await stream.end()).toMatchObject({ line: total, end: 'complete' });
  },
  3 * TEST_TIMEOUT_MS,
);

test(
  'a stop commits the lines of a stream and reports the last one, and the next process continues after it',
  async () => {
    const intake = await world.startIntake();
    const stream = openStream(intake.url, HEADERS, '?id=s');
    const sending = startSending(stream);
    await untilAcknowledged(stream, 500);
    expect(await intake.kill('SIGTERM')).toBe(0);
    await stream.ended;
    await sending.stop();
    const end = stream.answers.at(-1);
    expect(end).toMatchObject({ end: 'stopping', refused: 0 });
    const next = await world.startIntake();
    const from = (end?.line ?? 0) + 1;
    const rest = openStream(next.url, HEADERS, `?id=s&line=${from}`);
    for (let n = from - 1; n < from + 99; n++) await rest.write(line(n));
    expect(await rest.end()).toMatchObject({ line: from + 99, end: 'complete' });
    await world.startConsuming();
    await vi.waitFor(() => expect(world.processed('ann').length).toBe(from + 99), WAIT);
    expect(world.processed('ann')).toEqual(names(from + 99));
  },
  TEST_TIMEOUT_MS,
);
