/** One round of graphile-worker for `process`: jobs are queued while it is stopped, then it is let go. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { countOf, emptyEvents } from './copy-floor.ts';
import { addEventJobs } from './graphile-jobs.ts';
import type { World } from './world.ts';

const DEADLINE_MS = 120_000;

/** Starts it. @returns a function that runs a round: so many jobs → rows a second. */
export async function startGraphile(
  world: World,
  data: object,
): Promise<(count: number) => Promise<number>> {
  const { database, databaseUrl } = world;
  const child = fork(join(import.meta.dirname, 'graphile-worker-loop.ts'), {
    // It logs every job.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, DATABASE_URL: databaseUrl, NO_LOG_SUCCESS: '1' },
  });
  world.onClose(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await once(child, 'message');
  return async (count) => {
    await emptyEvents(database);
    child.kill('SIGSTOP');
    await addEventJobs(database, count, { data });
    const startedAtMs = performance.now();
    child.kill('SIGCONT');
    for (let stored = 0; stored < count; stored = await countOf(database, 'events_copied')) {
      if (performance.now() - startedAtMs > DEADLINE_MS)
        throw new Error(`graphile-worker: ${stored} of ${count} jobs in ${DEADLINE_MS} ms`);
      await sleep(10);
    }
    return count / ((performance.now() - startedAtMs) / 1_000);
  };
}
