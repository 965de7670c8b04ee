/**
 * Comparator of `process`: graphile-worker in a process of its own, a job an event. Each job only
 * inserts the same row as ours. It does not claim the event's id or look up the person.
 */
import { run } from 'graphile-worker';
import { STORE_EVENT, type EventJob } from './graphile-jobs.ts';

const CONNECTIONS = 10;

await run({
  preset: {
    worker: {
      connectionString: process.env['DATABASE_URL'] as string,
      concurrentJobs: CONNECTIONS,
      maxPoolSize: CONNECTIONS + 2,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  taskList: {
    async [STORE_EVENT](payload, helpers) {
      const { personId, eventId, occurredAt, data } = payload as EventJob;
      await helpers.query(
        `insert into events_copied
           (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at, processed_at)
         values (1, $1, $2, 'event', 'Order Placed', $3, $4, now(), now())`,
        [personId, eventId, data, occurredAt],
      );
    },
  },
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
