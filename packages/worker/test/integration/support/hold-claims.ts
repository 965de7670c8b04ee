/** Holds a worker process in its claim of delivery queues. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';
import { onTestFinished } from 'vitest';
import { createGate, until } from './lane-world.ts';

export interface HeldClaims {
  /** Resolves once a worker waits with its claim. */
  areAsked(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Claims wait until the release. The log of an event does not. Begin it when the worker has started: a start reads
 * workspaces too.
 */
export async function holdClaims(database: Database): Promise<HeldClaims> {
  const held = createGate();
  const released = createGate();
  onTestFinished(() => released.open());
  const holding = database.transaction().execute(async (transaction) => {
    await sql`lock table environments in access exclusive mode`.execute(transaction);
    held.open();
    await released.opened;
  });
  await held.opened;
  return {
    areAsked: () =>
      until(async () => {
        const { rows } = await sql`
          select from pg_stat_activity
           where datname = current_database() and application_name = 'sluice-worker'
             and wait_event_type = 'Lock' and query like '%fencing + 1%'`.execute(database);
        return rows.length > 0;
      }),
    async release() {
      released.open();
      await holding;
    },
  };
}
