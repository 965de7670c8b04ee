/**
 * Signing out of the console: `DELETE /console/session`. A session that an identity provider opened ends there too, if
 * the provider offers an address for it: otherwise the next click on "Sign in with" would open the console again, for
 * any person at the browser. The session here is over first, for every answer of the provider.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { ConsoleSession } from '@sluice/database/users/console-sessions';
import { findIdentityProvider } from '@sluice/database/users/identity-providers';
import type { FastifyRequest } from 'fastify';
import { readSessionCookie, setCookieHeader } from '../auth/session-cookie.ts';
import type { ReadSession } from '../auth/session-door.ts';
import { endSession, isThere } from '../console/begin-session.ts';
import { HIDDEN } from '../console/console-call.ts';
import { readIdToken } from '../console/kept-id-token.ts';
import type { ApiServer } from '../http/api-server.ts';
import type { ProviderClient } from './provider-client.ts';

export interface SignOutEffects {
  readonly database: Database;
  readonly providers: ProviderClient;
  readonly now: () => number;
}

/** On a scope that refuses the visits of other pages (`sign-in.ts`). */
export function registerSignOut(
  scope: ApiServer,
  effects: SignOutEffects,
  readSession: ReadSession,
): void {
  const { database, providers } = effects;

  scope.delete('/console/session', { schema: HIDDEN }, async (request, reply) => {
    const reading = await readSession(request);
    const url = isThere(reading) ? await leave(request, reading.session) : undefined;
    void reply.header('set-cookie', setCookieHeader(request));
    return url === undefined ? reply.code(204).send() : reply.send({ url });
  });

  /** @returns the address at which the browser signs out at the provider. */
  async function leave(
    request: FastifyRequest,
    session: ConsoleSession,
  ): Promise<string | undefined> {
    if (session.way !== 'provider') {
      await endSession(effects, request, session);
      return undefined;
    }
    const { accountId } = session;
    // Before its end: another issuer would have ended the session, so the token goes to the one that it came from.
    const provider = await findIdentityProvider(database, accountId);
    const idToken = await readIdToken(database, accountId, readSessionCookie(request) ?? '');
    const isEnded = await endSession(effects, request, session);
    if (!isEnded || !provider) return undefined;
    return providers.signOutUrl(provider, idToken);
  }
}
