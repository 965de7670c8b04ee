/**
 * All services in one process, for a small installation.
 *
 * The memory of Node, the libraries and our own modules is taken once. `start-standalone.ts` starts it, and starts it
 * again when it ends.
 *
 * The modules are loaded while Postgres starts: the services' settings for it come as a message of the parent
 * (`service-process.ts`). Without a parent the environment is the process' own.
 *
 * They share an event loop, so together they use one core. `PROCESS_PER_SERVICE=true npm start` has a process each.
 */
import { shareProcess, type Environment } from '@sluice/platform/process/process-end';

/** By the names that they give themselves. No new call comes in once intake has stopped. */
const STOP_ORDER = ['intake', 'worker', 'api', 'vendor simulator'];

const environment = new Promise<Environment>((resolve) => {
  if (process.send === undefined) resolve(process.env);
  else process.once('message', (told) => resolve(Object.assign(process.env, told)));
});
const end = shareProcess(process, 'sluice', STOP_ORDER, environment);
const begin = (name: string, loading: Promise<unknown>): Promise<unknown> =>
  loading.catch((error: unknown) => end.fail(name, error));
// At the same time: a worker that waits for Redis holds no intake up, which has a disk to write to meanwhile.
await Promise.all([
  ...(process.env['STRIPE_SECRET_KEY']
    ? []
    : [begin('vendor simulator', import('@sluice/billing-vendor/main'))]),
  begin('api', import('@sluice/api/main')),
  begin('worker', import('@sluice/worker/main')),
  begin('intake', import('@sluice/intake/main')),
]);
