/**
 * The broker goes away while a real intake process takes calls.
 *
 * It goes in each of its ways. Its commit batches are read from the queues once the broker is back: that a consumer
 * outlives its broker is not intake's to show.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  metric,
  send,
  startOutageWorld,
  startSender,
  type OutageWorld,
} from '../support/outage-world.ts';
import type { ServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { startBystander } from '@sluice/platform/testing/bystander';
import { StandstillClock } from '@sluice/platform/testing/standstill-clock';

const PEOPLE = ['ann', 'bob', 'cy', 'dee'];
const WAIT = { timeout: 60_000, interval: 20 };
const TEST_TIMEOUT_MS = 240_000;
/** The default. Beside it, a standstill of a busy machine is short. */
const LONG_DEADLINE = { INTAKE_COMMIT_DEADLINE_MS: '2000' };

let world: OutageWorld;
beforeEach(async () => {
  world = await startOutageWorld();
});
afterEach(() => world.close());

const names = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `event-${from + n}`);

const untilDiskBufferIsEmpty = (intake: ServiceUnderTest) =>
  vi.waitFor(async () => {
    expect(await metric(intake, 'sluice_intake_spill_envelopes')).toBe(0);
  }, WAIT);

interface SteadyAnswer extends Awaited<ReturnType<typeof send>> {
  /** `durationMs` without the standstills of the machine. */
  readonly steadyMs: number;
}

/** Sends one after another. */
async function sendInTurn(intake: ServiceUnderTest, events: readonly string[]) {
  const bystander = await startBystander(process.execPath);
  const clock = new StandstillClock(() => bystander.ask());
  const answers: SteadyAnswer[] = [];
  try {
    for (const event of events) {
      const startedAtMs = clock.nowMs;
      const answer = await send(intake, 'ann', event);
      answers.push({ ...answer, steadyMs: clock.nowMs - startedAtMs });
    }
  } finally {
    await clock.stop();
    bystander.end();
  }
  return answers;
}

/**
 * All are taken within the deadline and the rest of the lease, and a shared machine adds its own. The first ones find out
 * that the broker is away, and no other one waits for it.
 */
function expectFewSlow(answers: readonly SteadyAnswer[]): void {
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(Math.max(...answers.map(({ steadyMs }) => steadyMs))).toBeLessThan(5_000);
  expect(answers.filter(({ steadyMs }) => steadyMs > 1_600).length).toBeLessThanOrEqual(2);
  // Several standstills long.
  expect(Math.max(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(30_000);
}

/** A call that a busy broker confirms late may be in the disk buffer for a moment. */
const untilReady = (intake: ServiceUnderTest) =>
  vi.waitFor(async () => expect((await fetch(`${intake.url}/readyz`)).status).toBe(200), WAIT);

describe('a Redis that', () => {
  test(
    'is killed under load: every call is answered 200, once processed, in each person’s order',
    async () => {
      // With a shorter deadline a busy broker confirms late again and again, and the disk buffer is never empty.
      const intake = await world.startIntake(LONG_DEADLINE);
      const senders = PEOPLE.map((person) => startSender(intake, person));
      const untilAcknowledged = (more: number) => {
        const wanted = senders.map(({ acknowledged }) => acknowledged.length + more);
        return vi.waitFor(() => {
          for (const [index, count] of wanted.entries())
            expect(senders[index]?.acknowledged.length).toBeGreaterThan(count);
        }, WAIT);
      };
      await untilAcknowledged(50);
      await world.killRedis();
      await untilAcknowledged(50);
      expect(await metric(intake, 'sluice_intake_spill_envelopes')).toBeGreaterThan(0);
      expect(await metric(intake, 'sluice_intake_spill_bytes')).toBeGreaterThan(0);
      expect(await metric(intake, 'sluice_intake_spill_oldest_seconds')).toBeGreaterThan(0);
      expect((await fetch(`${intake.url}/readyz`)).status).toBe(503);
      await world.restartRedis();
      // While the senders go on.
      await untilDiskBufferIsEmpty(intake);
      await untilAcknowledged(20);
      await untilReady(intake);
      await Promise.all(senders.map((sender) => sender.stop()));
      await world.startConsuming();

      for (const [index, person] of PEOPLE.entries()) {
        const { acknowledged = [], others } = senders[index] ?? {};
        expect(others).toEqual([]);
        await vi.waitFor(
          () => expect(world.processed(person)).toHaveLength(acknowledged.length),
          WAIT,
        );
        expect(world.processed(person)).toEqual(acknowledged);
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'hangs: no call waits longer than the deadline, and all is processed in order when it wakes',
    async () => {
      const intake = await world.startIntake(LONG_DEADLINE);
      expect(await send(intake, 'ann', 'event-0')).toMatchObject({ status: 200 });
      process.kill(world.redis.pid, 'SIGSTOP');
      const answers = await sendInTurn(intake, names(1, 40));
      process.kill(world.redis.pid, 'SIGCONT');
      await world.startConsuming();
      expectFewSlow(answers);
      await vi.waitFor(() => expect(world.processed('ann')).toHaveLength(40), WAIT);
      await untilDiskBufferIsEmpty(intake);
      expect(world.processed('ann')).toEqual(names(0, 40));
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'is full beside a disk buffer of 0 bytes makes intake refuse calls and fail /readyz until it has memory again',
    async () => {
      // Without a disk buffer, a broker that confirms late refuses the call.
      const intake = await world.startIntake({
        INTAKE_SPILL_SIZE_BYTES_MAX: '0',
        INTAKE_COMMIT_DEADLINE_MS: '20000',
      });
      expect(await send(intake, 'ann', 'event-0')).toMatchObject({ status: 200 });
      expect(await world.command('CONFIG SET maxmemory 1')).toContain('OK');
      expect(await send(intake, 'ann', 'refused')).toMatchObject({ status: 503 });
      const readiness = await fetch(`${intake.url}/readyz`);
      expect(readiness.status).toBe(503);
      expect(await readiness.json()).toMatchObject({ full: true, spill: { filling: true } });
      expect(await world.command('CONFIG SET maxmemory 0')).toContain('OK');
      await vi.waitFor(
        async () => expect(await send(intake, 'ann', 'event-1')).toMatchObject({ status: 200 }),
        WAIT,
      );
      await untilReady(intake);
      await world.startConsuming();
      await vi.waitFor(() => expect(world.processed('ann')).toEqual(names(0, 2)), WAIT);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'refuses the password is reported in the log and in /readyz, and gets acknowledged calls once it accepts it',
    async () => {
      const url = world.redis.url.replace('redis://', 'redis://sluice:not-yet@');
      const intake = await world.startIntake({ REDIS_URL: url });
      const told =
        'Redis refuses the user or password of REDIS_URL (WRONGPASS); correct REDIS_URL or the user in Redis';
      await vi.waitFor(
        () =>
          expect(intake.logs.map(({ msg }) => msg)).toContain(
            `the broker does not answer: ${told}`,
          ),
        WAIT,
      );
      expect(await send(intake, 'ann', 'event-0')).toMatchObject({ status: 200 });
      await vi.waitFor(async () => {
        const readiness = await fetch(`${intake.url}/readyz`);
        expect(readiness.status).toBe(503);
        expect(await readiness.json()).toMatchObject({ broker: told, durable: false });
      }, WAIT);
      expect(JSON.stringify(intake.logs)).not.toContain('not-yet');

      expect(await world.command('ACL SETUSER sluice on >not-yet ~* &* +@all')).toContain('OK');
      await world.startConsuming();
      await vi.waitFor(() => expect(world.processed('ann')).toEqual(['event-0']), WAIT);
      await untilReady(intake);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'refuses for want of memory counts as away; a full disk buffer answers 503 and when to come again',
    async () => {
      const intake = await world.startIntake({ INTAKE_SPILL_SIZE_BYTES_MAX: '2000' });
      await send(intake, 'ann', 'event-0');
      expect(await world.command('CONFIG SET maxmemory 1')).toContain('OK');
      const statuses = [];
      let last = await send(intake, 'ann', 'event-1');
      for (let n = 2; last.status === 200; n++) {
        statuses.push(last.status);
        last = await send(intake, 'ann', `event-${n}`);
      }
      expect(statuses.length).toBeGreaterThan(1);
      expect(last.status).toBe(503);
      expect(Number(last.retryAfter)).toBeGreaterThanOrEqual(1);
      const readiness = await fetch(`${intake.url}/readyz`);
      expect(readiness.status).toBe(503);
      expect(await readiness.json()).toMatchObject({ spill: { filling: true } });

      expect(await world.command('CONFIG SET maxmemory 0')).toContain('OK');
      await world.startConsuming();
      await vi.waitFor(
        () => expect(world.processed('ann')).toEqual(names(0, statuses.length + 1)),
        WAIT,
      );
      await untilDiskBufferIsEmpty(intake);
      expect((await send(intake, 'ann', 'after')).status).toBe(200);
    },
    TEST_TIMEOUT_MS,
  );
});

describe('a Postgres that carries the queues and', () => {
  test.each([
    ['cut', 'restore'],
    ['hold', 'restore'],
    ['hold', 'forget'],
  ] as const)(
    'is away (%s, then %s): calls are taken within the deadline and processed once, in order',
    async (ending, mending) => {
      const proxy = await startTcpProxyTo(world.databaseUrl);
      try {
        await world.startConsuming('postgres');
        const intake = await world.startIntake({
          DATABASE_URL: proxy.url,
          REDIS_URL: '',
          ...LONG_DEADLINE,
        });
        for (const name of names(0, 10)) await send(intake, 'ann', name);
        // On a busy machine the first of them are too late for a queue that is only being opened.
        await untilDiskBufferIsEmpty(intake);
        proxy[ending]();
        const answers = await sendInTurn(intake, names(10, 40));
        expectFewSlow(answers);
        expect(await metric(intake, 'sluice_intake_spill_envelopes')).toBe(30);
        proxy[mending]();
        await untilDiskBufferIsEmpty(intake);
        expect((await send(intake, 'ann', 'event-40')).status).toBe(200);
        await vi.waitFor(() => expect(world.processed('ann')).toEqual(names(0, 41)), WAIT);
        expect(await intake.kill('SIGTERM')).toBe(0);
      } finally {
        await proxy.close();
      }
    },
    TEST_TIMEOUT_MS,
  );
});

describe('an intake that ends with calls in its disk buffer', () => {
  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'by %s: the next start, with Redis still away, goes on with them first',
    async (signal) => {
      const first = await world.startIntake();
      await world.killRedis();
      for (const name of names(0, 20)) {
        expect((await send(first, 'ann', name)).status).toBe(200);
      }
      expect(await first.kill(signal)).toBe(signal === 'SIGTERM' ? 0 : null);

      const second = await world.startIntake();
      expect(await metric(second, 'sluice_intake_spill_envelopes')).toBe(20);
      for (const name of names(20, 40)) {
        expect((await send(second, 'ann', name)).status).toBe(200);
      }
      await world.restartRedis();
      await world.startConsuming();
      await vi.waitFor(() => expect(world.processed('ann')).toHaveLength(40), WAIT);
      expect(world.processed('ann')).toEqual(names(0, 40));
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'while Redis hangs: a start does not wait for it',
    async () => {
      process.kill(world.redis.pid, 'SIGSTOP');
      const intake = await world.startIntake();
      expect(await send(intake, 'ann', 'event-0')).toMatchObject({ status: 200 });
      process.kill(world.redis.pid, 'SIGCONT');
      await world.startConsuming();
      await vi.waitFor(() => expect(world.processed('ann')).toEqual(['event-0']), WAIT);
    },
    TEST_TIMEOUT_MS,
  );
});
