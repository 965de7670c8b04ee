/**
 * Reads from a replica (`DATABASE_READ_URL`), and the age of their answers.
 *
 * A route declares that it may lag (`config.mayLag`); its handler reads through {@link readsOf}. Such a call goes to
 * the replica if both are true, else to the primary.
 * - the replica is at most `stalenessMsMax` behind, as far as this process knows (`serving/replica-watch.ts`);
 * - its caller has made no change for that time, at any API process. So a caller always finds its own changes.
 *
 * `X-Sluice-Staleness-Ms-Max` in the answer is the bound, or 0 from the primary. The answer holds all that was
 * confirmed that long before the call. The question for changes of the caller reads one row of the primary by its key,
 * for each call that may lag. So only reads that cost a multiple of that declare it.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { FastifyRequest } from 'fastify';
import type { ApiServer } from './api-server.ts';
import { isRead } from './call-kind.ts';

export interface ReplicaReads {
  /** Reads the replica, and the primary if that fails. */
  readonly database: Database;
  readonly stalenessMsMax: number;
  /** Whether all that was confirmed `stalenessMsMax` ago is on the replica. */
  readonly isFresh: () => boolean;
  readonly hasWritten: (caller: string) => Promise<boolean>;
  readonly noteWrite: (caller: string) => Promise<void>;
  /** Called for each call that may lag. */
  readonly onRead: (from: 'replica' | 'primary') => void;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer may be as old as `DATABASE_READ_STALENESS_MS_MAX`. Absent: it is read from the primary. */
    mayLag?: boolean;
  }
  interface FastifyRequest {
    /** The replica, for a call that is read from it; else null. */
    replica: Database | null;
    /** With a replica: true once the caller is known and the schemas fit. Only then can the call have made a change. */
    isHandled: boolean;
  }
}

const STALENESS_HEADER = 'x-sluice-staleness-ms-max';

/** The database for a call of a route that may lag. */
export const readsOf = ({ replica }: FastifyRequest, primary: Database): Database =>
  replica ?? primary;

/** For every route of `app`, also those declared later. @param reads - absent: there is no replica. */
export function readFromReplica(app: ApiServer, reads: ReplicaReads | undefined): void {
  app.decorateRequest('replica', null);
  app.decorateRequest('isHandled', false);
  if (!reads) return;

  // After the guards, so that the caller is known.
  app.addHook('preHandler', async (request, reply) => {
    request.isHandled = true;
    if (request.routeOptions.config.mayLag !== true) return;
    const from = (await mayReadReplica(reads, request)) ? 'replica' : 'primary';
    if (from === 'replica') request.replica = reads.database;
    reads.onRead(from);
    void reply.header(STALENESS_HEADER, from === 'replica' ? reads.stalenessMsMax : 0);
  });

  // Before the answer leaves: who has it may ask any process next.
  app.addHook('onSend', async (request, reply, payload) => {
    const caller = nameOf(request);
    // A 4xx of a handler may come after a change: the purchase of a declined card, or of one that is not done yet, is listed.
    const isRefused = !request.isHandled && reply.statusCode >= 400 && reply.statusCode < 500;
    if (caller === undefined || isRead(request) || isRefused) return payload;
    try {
      await reads.noteWrite(caller);
    } catch (error) {
      // The change is made; its answer must not report a failure.
      request.log.error(
        { error },
        'a change could not be noted for reads of the replica; its caller may read the former state until the replica has it',
      );
    }
    return payload;
  });
}

async function mayReadReplica(reads: ReplicaReads, request: FastifyRequest): Promise<boolean> {
  if (!reads.isFresh()) return false;
  const caller = nameOf(request);
  return caller === undefined || (!(await reads.hasWritten(caller)) && reads.isFresh());
}

/**
 * One name for a credential with the sessions that it opened, for a user with all sessions, and for a link to the
 * portal. Undefined if a call needs no credentials. They are numbered across all tenants.
 */
function nameOf({ accountCaller, caller }: FastifyRequest): string | undefined {
  if (caller?.portal) return `portal ${caller.portal.portalLinkId}`;
  const known = accountCaller ?? caller;
  if (!known) return undefined;
  return known.session?.userId != null
    ? `user ${known.session.userId}`
    : `credential ${known.credentialId}`;
}
