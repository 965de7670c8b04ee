/** Two services in one process, for `begin-process.test.ts`. Their ending is `ENDING`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beginProcess } from '@sluice/platform/process/begin-process';
import { shareProcess } from '@sluice/platform/process/process-end';
import { platformSettings } from '@sluice/platform/settings/config';
import { AppError } from '@sluice/domain/values/errors';
import { z } from 'zod';

const settings = platformSettings.extend({
  ENDING: z.enum(['stop', 'stuck', 'told', 'callback', 'late']),
});

shareProcess(process, 'both', ['intake', 'worker']);
const worker = await beginProcess(process, 'worker', settings);
const intake = await beginProcess(process, 'intake', settings);
/** The times of two lines differ, and so may their order in the output: each service has a buffer of its own. */
async function finish({ logger }: typeof worker): Promise<void> {
  await sleep(5);
  logger.info('finished');
  await sleep(5);
}
worker.lifecycle.defer('worker', () => finish(worker));
setTimeout(() => {}, 60_000);
switch (intake.settings.ENDING) {
  case 'late':
    intake.lifecycle.defer('intake', () => {
      void beginProcess(process, 'third', settings).then(({ logger }) => logger.info('began'));
      return finish(intake);
    });
    process.kill(process.pid, 'SIGTERM');
    break;
  case 'told':
    worker.fail(new AppError('MIGRATION_MISMATCH', 'start a newer version'));
    break;
  case 'callback':
    setImmediate(() => {
      throw new TypeError('nobody thought of it');
    });
    break;
  case 'stuck':
    intake.lifecycle.defer('what cannot be closed', () => new Promise(() => {}));
    process.kill(process.pid, 'SIGTERM');
    break;
  case 'stop':
    intake.lifecycle.defer('intake', () => finish(intake));
    process.kill(process.pid, 'SIGTERM');
}
