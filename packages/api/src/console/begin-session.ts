/**
 * How every way into the console ends: the session that the browser had is over, and it has the cookie of the new one. So
 * a secret that was put into a browser beforehand opens nothing.
 */
import type { Database } from '@sluice/database/connection/connection';
import { type ConsoleSession, endConsoleSession } from '@sluice/database/users/console-sessions';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setCookieHeader } from '../auth/session-cookie.ts';
import type { ReadSession } from '../auth/session-door.ts';
import { callOf } from './console-call.ts';

interface SessionEffects {
  readonly database: Database;
  readonly now: () => number;
}

/** @param cookie - of the new session, whose row is there. */
export async function beginSession(
  effects: SessionEffects,
  readSession: ReadSession,
  request: FastifyRequest,
  reply: FastifyReply,
  cookie: string,
): Promise<FastifyReply> {
  await endCurrentSession(effects, readSession, request);
  return reply.header('set-cookie', setCookieHeader(request, cookie)).code(204).send();
}

/** Ends the session that the browser has, if any. */
export async function endCurrentSession(
  { database, now }: SessionEffects,
  readSession: ReadSession,
  request: FastifyRequest,
): Promise<void> {
  const reading = await readSession(request);
  if (reading.outcome !== 'open' && reading.outcome !== 'incomplete') return;
  const { session } = reading;
  const origin = { ...callOf(request), ...whoIs(session) };
  await endConsoleSession(database, session, origin, now());
}

/** Who ends the session, for the audit log. */
const whoIs = ({ userId, serviceAccountId, credentialId }: ConsoleSession) =>
  userId === null
    ? { actor: { type: 'service_account', serviceAccountId } as const, credentialId }
    : { actor: { type: 'user', userId } as const };
