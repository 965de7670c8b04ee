/**
 * Cookie → the open session: the second door beside the bearer token, for the guards of account and workspace
 * (`account-guard.ts`, `authenticate.ts`). Each call asks Postgres, so a session that is ended is refused from then on.
 */
import { findConsoleSession, type ConsoleSession } from '@sluice/database/users/console-sessions';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { DEMO_ELSEWHERE_MESSAGE } from '@sluice/domain/accounts/demo-calls';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest } from 'fastify';
import type { Problem } from '../http/problem.ts';
import { isForDemo } from './demo-guard.ts';
import { isAllowedFrom } from './ip-allowlist.ts';
import { createUseRecorder, type UseRecorderEffects } from './record-use.ts';
import { accountOfCookie, readSessionCookie, refuseVisit, TWO_CALLERS } from './session-cookie.ts';

export interface SessionDoorEffects extends UseRecorderEffects {
  /** Names for which the demo opens however a call came (`DEMO_HOSTS`). */
  readonly demoHosts: readonly string[];
}

export type SessionReading =
  /** There is no cookie: the call has a token, or no credentials. */
  | { readonly outcome: 'none' }
  | { readonly outcome: 'open'; readonly session: ConsoleSession }
  /** Signed in by one factor if there must be two: it only opens the way to the second one. */
  | { readonly outcome: 'incomplete'; readonly session: ConsoleSession }
  /** @property text - the cookie, if it is not in force, or not for this address. */
  | { readonly outcome: 'refused'; readonly problem: Problem; readonly text?: string };

export type ReadSession = (request: FastifyRequest) => Promise<SessionReading>;

export const DEMO_TOKEN_HASH = hashSecret(DEMO.accountToken);

export function createSessionDoor(effects: SessionDoorEffects): ReadSession {
  const { database, demoHosts } = effects;
  const noteUse = createUseRecorder(effects);
  return async (request) => {
    const text = readSessionCookie(request);
    if (text === undefined) return { outcome: 'none' };
    if (request.headers.authorization !== undefined)
      return { outcome: 'refused', problem: TWO_CALLERS };
    const foreign = refuseVisit(request);
    if (foreign) return { outcome: 'refused', problem: foreign };
    const session = await findSession(database, text, isUse(request));
    if (!session) return { outcome: 'refused', problem: SESSION_OVER, text };
    if (session.way === 'demo' && !isForDemo(request.headers, demoHosts))
      return {
        outcome: 'refused',
        problem: { code: 'forbidden', message: DEMO_ELSEWHERE_MESSAGE },
      };
    if (!isAllowedFrom(request.ip, session.ipAllowlist))
      return {
        outcome: 'refused',
        problem: {
          code: 'ip_not_allowed',
          message:
            'the token that opened the session may not be used from this address; use an address of its ip_allowlist',
        },
        text,
      };
    const { accountId, credentialId } = session;
    if (credentialId !== null) noteUse(request, { accountId, credentialId });
    return { outcome: session.standing === 'complete' ? 'open' : 'incomplete', session };
  };
}

/** Answer to a call of an incomplete session. */
export const SECOND_FACTOR_MISSING: Problem = {
  code: 'forbidden',
  message: 'the sign-in lacks the second factor; enter its code in the console',
};

/**
 * The subject that counts the calls of a session, together in both halves. A token's sessions share the token's own
 * subject, so that a token may not call more often by opening many sessions. Any visitor may open sessions of the demo,
 * so the sessions of one network share a subject.
 */
export const sessionSubject = (
  { sessionId, credentialId, way }: Pick<ConsoleSession, 'sessionId' | 'credentialId' | 'way'>,
  { ip }: Pick<FastifyRequest, 'ip'>,
): number | string =>
  way === 'demo' ? `demo ${callerNetwork(ip)}` : (credentialId ?? `session ${sessionId}`);

/**
 * The session as it is now, for a call that goes on for long, which is no use of it. Undefined if it is over, incomplete, or may not be used
 * from the address of the call any more.
 */
export async function findOpenSession(
  request: FastifyRequest,
  database: Database,
): Promise<ConsoleSession | undefined> {
  const session = await findSession(database, readSessionCookie(request) ?? '', false);
  if (session?.standing !== 'complete') return undefined;
  return isAllowedFrom(request.ip, session.ipAllowlist) ? session : undefined;
}

async function findSession(
  database: Database,
  text: string,
  isUsed: boolean,
): Promise<ConsoleSession | undefined> {
  const accountId = accountOfCookie(text);
  if (accountId === undefined) return undefined;
  return findConsoleSession(database, accountId, hashSecret(text), DEMO_TOKEN_HASH, isUsed);
}

/** False for a read that the page repeats by itself: it sends this header unless the user has done something. */
const isUse = ({ headers }: FastifyRequest): boolean =>
  headers['x-sluice-unattended'] === undefined;

const SESSION_OVER: Problem = {
  code: 'unauthorized',
  message: 'the session has ended; sign in again',
};
