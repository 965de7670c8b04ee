/**
 * The common end of every way into the console: the browser's earlier session is over, and it has the cookie of the new
 * one. So a secret that was put into a browser beforehand opens no session.
 */
import type { Database } from '@sluice/database/connection/connection';
import { type ConsoleSession, endConsoleSession } from '@sluice/database/users/console-sessions';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setCookieHeader } from '../auth/session-cookie.ts';
import type { ReadSession, SessionReading } from '../auth/session-door.ts';
import { callOf } from './console-call.ts';

interface SessionEffects {
  readonly database: Database;
  readonly now: () => number;
}

/**
 * @param cookie - of the new session, whose row is there.
 * @param body - further fields of the answer to the page, if any.
 */
export async function beginSession(
  effects: SessionEffects,
  readSession: ReadSession,
  request: FastifyRequest,
  reply: FastifyReply,
  cookie: string,
  body?: object,
): Promise<FastifyReply> {
  const reading = await readSession(request);
  if (isThere(reading)) await endSession(effects, request, reading.session);
  void reply.header('set-cookie', setCookieHeader(request, cookie));
  return body === undefined ? reply.code(204).send() : reply.send(body);
}

/** The browser has a session, complete or not. */
export const isThere = (
  reading: SessionReading,
): reading is Extract<SessionReading, { readonly session: ConsoleSession }> =>
  reading.outcome === 'open' || reading.outcome === 'incomplete';

/** Ends the session of the browser. @returns false if it was over already. */
export function endSession(
  { database, now }: SessionEffects,
  request: FastifyRequest,
  session: ConsoleSession,
): Promise<boolean> {
  const origin = {
    ...callOf(request),
    ...whoIs(session),
    sessionId: session.sessionId,
  };
  return endConsoleSession(database, session, origin, now());
}

/** The actor that ends the session, for the audit log. */
const whoIs = ({ userId, serviceAccountId, credentialId }: ConsoleSession) =>
  userId === null
    ? { actor: { type: 'service_account', serviceAccountId } as const, credentialId }
    : { actor: { type: 'user', userId } as const };
