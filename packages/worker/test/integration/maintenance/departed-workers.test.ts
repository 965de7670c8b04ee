/**
 * A killed worker process is dead only after two looks.
 *
 * The first may be taken before the second can be acted on.
 */
import type { Database } from '@sluice/database/connection/connection';
import { openSession } from '@sluice/database/connection/held-session';
import {
  enter,
  listDepartedWorkers,
  newProcessId,
} from '@sluice/database/maintenance/worker-processes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { beforeEach, expect, test, vi } from 'vitest';
import { createDepartedWorkers } from '../../../src/maintenance/departed-workers.ts';

let database: Database;
let processId: number;

beforeEach(async () => {
  const { database: opened, url } = await createTestDatabase();
  database = opened;
  const session = await openSession({ url, applicationName: 'test' }, () => undefined);
  processId = await newProcessId(session);
  await enter(session, processId, ['broker worker 1']);
  await session.end();
  await vi.waitUntil(async () => (await listDepartedWorkers(database)).length === 1, {
    timeout: 30_000,
    interval: 20,
  });
});

function watch() {
  let nowMs = 1_000;
  const putBack: string[] = [];
  const departed = createDepartedWorkers({
    database,
    putBackJobsOf: (ids) => {
      putBack.push(...ids);
      return Promise.resolve(ids.length);
    },
    monotonicNow: () => nowMs,
    logger: createLogger('test', 'silent'),
  });
  return {
    departed,
    putBack,
    pass: (ms: number) => void (nowMs += ms),
    run: () => departed.reconcileLoop.run(() => false),
  };
}

test('a look at the start counts as the first: the first run of the loop takes over', async () => {
  const { departed, putBack, pass, run } = watch();
  await departed.look();
  expect(putBack).toEqual([]);
  pass(450);
  await run();
  expect(putBack).toEqual(['broker worker 1']);
  expect(await listDepartedWorkers(database)).toEqual([]);
});

test('within half a second of the first look a process may still come back', async () => {
  const { departed, putBack, pass, run } = watch();
  await departed.look();
  pass(449);
  await run();
  expect(putBack).toEqual([]);
  pass(1);
  await run();
  expect(putBack).toEqual(['broker worker 1']);
});

test('without a look before, the first run only remembers', async () => {
  const { putBack, run } = watch();
  await run();
  expect(putBack).toEqual([]);
  expect(await listDepartedWorkers(database)).toHaveLength(1);
});
