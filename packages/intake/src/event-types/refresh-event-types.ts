/**
 * Keeps the schemas in memory (`event-type-cache.ts`) as fresh as possible.
 *
 * Each read finds the workspaces whose types have changed, which is a short row a workspace, and reads their schemas
 * alone.
 *
 * At the start they are read before the first call is taken: otherwise intake would accept payloads that do not fit.
 *
 * While Postgres is away, the known schemas stay in force, as the known keys do (`auth/refresh-keys.ts`).
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  listEventTypeRevisions,
  listSchemasInForce,
  type EventTypeRevision,
  type SchemaInForce,
} from '@sluice/database/webhooks/event-types';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { EventTypeCache } from './event-type-cache.ts';

export class EventTypeRefresh {
  readonly cache = new EventTypeCache();
  readonly #reads: EventTypeReads;

  constructor(reads: EventTypeReads) {
    this.#reads = reads;
  }

  /** Reads the types that have changed since the read before. */
  async read(): Promise<void> {
    const stale = this.cache.staleOf(await this.#reads.listRevisions());
    if (stale.length === 0) return;
    const environmentIds = stale.map(({ environmentId }) => environmentId);
    this.cache.put(stale, await this.#reads.listSchemas(environmentIds));
  }

  /** Until `lifecycle` stops it. @param intervalMs - from the end of one read to the next. */
  start(intervalMs: number, logger: Logger, lifecycle: Lifecycle): void {
    const repetition = repeat('read event types', intervalMs, logger, () =>
      this.read().catch((error: unknown) =>
        logger.warn(
          { error },
          'event types could not be read; intake uses the types of its last read, and tries again',
        ),
      ),
    );
    lifecycle.defer('refresh of event types', () => repetition.stop());
  }
}

export interface EventTypeReads {
  readonly listRevisions: () => Promise<readonly EventTypeRevision[]>;
  readonly listSchemas: (environmentIds: readonly number[]) => Promise<readonly SchemaInForce[]>;
}

export const readsOf = (database: Database): EventTypeReads => ({
  listRevisions: () => listEventTypeRevisions(database),
  listSchemas: (environmentIds) => listSchemasInForce(database, environmentIds),
});
