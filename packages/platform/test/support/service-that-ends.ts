/** Smallest possible service, for `begin-process.test.ts`. `ENDING` selects its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '@sluice/domain/values/errors';
import { beginProcess } from '@sluice/platform/process/begin-process';
import { platformSettings } from '@sluice/platform/settings/config';
import { z } from 'zod';

const { settings, logger, lifecycle, fail, abandon } = await beginProcess(
  process,
  'small',
  platformSettings.extend({
    ENDING: z.enum([
      'foreseen',
      'after lines',
      'several',
      'top level',
      'rejection',
      'callback',
      'told',
      'stopped',
      'stuck',
      'abandoned',
    ]),
  }),
);
const waiting = setTimeout(() => {}, 60_000);
switch (settings.ENDING) {
  case 'foreseen':
    throw new AppError('PORT_TAKEN', 'choose another port', { cause: new Error('EADDRINUSE') });
  case 'after lines':
    for (let count = 0; count < 100; count++) logger.info(`line ${count}`);
    throw new AppError('PORT_TAKEN', 'choose another port');
  case 'several':
    throw new AppError('DATABASE_UNAVAILABLE', 'start it', {
      cause: new AggregateError([new Error('refused by ::1'), new Error('refused by 127.0.0.1')]),
    });
  case 'top level':
    throw new TypeError('nobody thought of it');
  case 'rejection':
    void Promise.reject(new TypeError('nobody thought of it'));
    break;
  case 'callback':
    setImmediate(() => {
      throw new TypeError('nobody thought of it');
    });
    break;
  case 'told':
    fail(new AppError('MIGRATION_MISMATCH', 'start a newer version'));
    break;
  case 'stuck':
    lifecycle.defer('what cannot be closed', () => new Promise(() => {}));
    process.kill(process.pid, 'SIGTERM');
    break;
  case 'abandoned':
    lifecycle.defer('what cannot be closed', () => {
      logger.error('it cannot end');
      abandon(new AppError('JOB_HUNG', 'start it again'));
      return new Promise(() => {});
    });
    process.kill(process.pid, 'SIGTERM');
    break;
  case 'stopped': {
    const closed = Promise.withResolvers<void>();
    lifecycle.defer('what the start stands on', async () => {
      closed.resolve();
      // Work in progress is finished all the same.
      await sleep(50);
      clearTimeout(waiting);
      logger.info('finished');
    });
    process.kill(process.pid, 'SIGTERM');
    await closed.promise;
    throw new Error('it is closed');
  }
}
