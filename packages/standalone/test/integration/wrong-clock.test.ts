/**
 * Each service on a machine whose clock is not Postgres'.
 *
 * The services are the processes that operators run.
 */
import { createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import { track } from '@sluice/domain/testing/sample-operations';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { beginServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';

/** Longer than the minute between two measurements: one that fails or is too slow counts only at the next time. */
const WAIT = { timeout: 100_000, interval: 50 };
const TEST_TIMEOUT_MS = 300_000;

/** Run before the service: its `Date` goes wrong. */
const WRONG_DATE = `
  const right = Date;
  let aheadMs = 0;
  globalThis.Date = class extends right {
    constructor(...given) { given.length === 0 ? super(right.now() + aheadMs) : super(...given); }
    static now() { return right.now() + aheadMs; }
  };`;
const aheadBy = (ms: number) => `${WRONG_DATE} aheadMs = ${ms};`;
/** At this signal the clock jumps; then waits of a minute are over at once, both earlier and later ones. */
const JUMP_SIGNAL = 'SIGUSR2';
const jumpingBy = (ms: number) => `${WRONG_DATE}
  const wait = setTimeout;
  const minuteWaits = [];
  globalThis.setTimeout = Object.assign((run, delayMs, ...rest) => {
    // Long waits of a process end together, up to half a second early or 2 ms late.
    if (!(delayMs > 59_000 && delayMs < 60_100)) return wait(run, delayMs, ...rest);
    minuteWaits.push(run);
    return wait(run, aheadMs === 0 ? delayMs : 100, ...rest);
  }, wait);
  process.once('${JUMP_SIGNAL}', () => {
    aheadMs = ${ms};
    for (const run of minuteWaits) run();
  });`;

async function begin(service: string, program: string, queuePrefix = uniquePrefix()) {
  const { url, database } = await createTestDatabase();
  const process = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: queuePrefix,
    SHARD_COUNT: '1',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}`,
    [`${service.toUpperCase()}_PORT`]: '0',
  });
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  return { ...process, database, databaseUrl: url };
}

test.each(['intake', 'worker', 'api'])(
  '%s reports the distance between its clock and the clock of Postgres, and goes on',
  async (service) => {
    const process = await begin(service, aheadBy(60_000));
    const { url } = await process.started;
    await vi.waitFor(async () => {
      const page = await (await fetch(`${url}/metrics`)).text();
      const seconds = Number(/^sluice_clock_ahead_seconds\S* (\S+)$/m.exec(page)?.[1]);
      expect(seconds).toBeGreaterThan(30);
      expect(seconds).toBeLessThan(90);
      // The log comes through a pipe, so the page may be ahead of it.
      expect(process.logs).toContainEqual(
        expect.objectContaining({
          level: 40,
          msg: expect.stringMatching(
            /^the clock of this machine is \d+ s ahead of the clock of Postgres/,
          ),
        }),
      );
    }, WAIT);
    expect(await process.kill('SIGTERM')).toBe(0);
  },
  TEST_TIMEOUT_MS,
);

// It gave failing deliveries up, whose seven days were over by its clock.
test.each(['does not start', 'ends once it is so, though it runs'])(
  'a worker whose clock is days ahead %s, and logs the remedy',
  async (when) => {
    const runs = when !== 'does not start';
    const worker = await begin('worker', (runs ? jumpingBy : aheadBy)(8 * 86_400_000));
    if (runs) {
      await worker.started;
      void worker.kill(JUMP_SIGNAL);
    }
    expect(await worker.ended).toBe(1);
    expect(worker.logs.filter(({ port }) => port !== undefined)).toHaveLength(runs ? 1 : 0);
    expect(worker.logs).toContainEqual(
      expect.objectContaining({
        level: 60,
        code: 'CLOCK_WRONG',
        msg: expect.stringMatching(
          /6912\d\d s ahead of the clock of Postgres.*Synchronize both machines/,
        ),
      }),
    );
  },
  TEST_TIMEOUT_MS,
);

// It counted as hung, and the worker ended with all that it had in progress.
test(
  'a commit batch in progress does not count as hung because the clock is set ahead',
  async () => {
    const prefix = uniquePrefix();
    const worker = await begin('worker', jumpingBy(90_000), prefix);
    await worker.started;
    const producer = await openProducer({
      databaseUrl: worker.databaseUrl,
      redisUrl: testRedisUrl(),
      prefix,
      shardCount: 1,
      logger: createLogger('test', 'silent'),
    });
    onTestFinished(() => producer.close());
    const { database } = worker;
    await database.transaction().execute(async (transaction) => {
      await sql`lock table events in access exclusive mode`.execute(transaction);
      const commitBatch = { id: 'envelope-a', operations: [track('id:ann', 'hello')] };
      await producer.addCommitBatches([{ shard: 0, envelope: commitBatch }]);
      await untilLockWaiters(database, 1);
      void worker.kill(JUMP_SIGNAL);
      // Each is a tenth of a second after the last: the queues are looked at more than once meanwhile.
      await vi.waitFor(
        () =>
          expect(
            worker.logs.filter(({ msg }) => String(msg).startsWith('the clock of this machine'))
              .length,
          ).toBeGreaterThan(30),
        WAIT,
      );
    });
    await vi.waitFor(async () => {
      const { rows } = await sql`select from events where name = 'hello'`.execute(database);
      expect(rows).toHaveLength(1);
    }, WAIT);
    expect(worker.logs).not.toContainEqual(expect.objectContaining({ code: 'JOB_HUNG' }));
    expect(await worker.kill('SIGTERM')).toBe(0);
  },
  TEST_TIMEOUT_MS,
);
