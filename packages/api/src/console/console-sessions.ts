/** `/console/me`: the signed-in user and their rights. `/console/sessions`: the user's open sessions. */
import { findAccount } from '@sluice/database/accounts/accounts';
import { endConsoleSession, listConsoleSessions } from '@sluice/database/users/console-sessions';
import type { Database } from '@sluice/database/connection/connection';
import { capabilitiesOf } from '@sluice/domain/accounts/capabilities';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { idInPath } from '../http/fields.ts';
import { notFound, type Problem } from '../http/problem.ts';

export interface ConsoleSessionEffects {
  readonly database: Database;
  readonly now: () => number;
  /** Intake's address in the samples of the console. */
  readonly consoleIntakeUrl: string;
}

/** On a scope that `guardAccounts` was called on. A token has no session, and is refused. */
export function registerConsoleSessions(
  scope: ApiServer,
  { database, now, consoleIntakeUrl }: ConsoleSessionEffects,
): void {
  const config = {
    access: {
      role: 'member',
      refuse: (request) => (accountCallerOf(request).session ? undefined : FOR_USERS),
    },
  } satisfies Parameters<typeof scope.get>[1]['config'] & object;

  scope.get('/console/me', { config, schema: { hide: true } }, async (request, reply) => {
    const { accountId, role, scopes, session } = accountCallerOf(request);
    const account = await findAccount(database, accountId);
    if (!account || !session) return sendProblem(request, reply, FOR_USERS);
    const names = new Map(account.environments.map((each) => [each.environmentId, each.name]));
    return reply.send({
      // A token's has no number of a user, and its name in place of an email.
      user: { id: session.userId, email: session.name, role },
      account: { id: accountId, name: account.name, timezone: account.timezone },
      session: { id: session.sessionId, way: session.way },
      workspaces: session.environmentIds.map((id) => ({ id, name: names.get(id) ?? '' })),
      capabilities: [
        ...capabilitiesOf(role),
        ...(scopes.includes('fleet:read') ? ['fleet.read'] : []),
      ],
      intake_url: consoleIntakeUrl,
    });
  });

  scope.get('/console/sessions', { config, schema: { hide: true } }, async (request, reply) => {
    const { session } = accountCallerOf(request);
    if (!session) return sendProblem(request, reply, FOR_USERS);
    const listed = await listConsoleSessions(database, session);
    return reply.send({
      sessions: listed.map((each) => ({
        id: each.sessionId,
        way: each.way,
        is_current: each.sessionId === session.sessionId,
        created_at: each.createdAt.toISOString(),
        last_seen_at: each.lastSeenAt.toISOString(),
        ends_at: each.endsAt.toISOString(),
        ip_addr: each.ipAddr,
        user_agent: each.userAgent,
      })),
    });
  });

  scope.delete(
    '/console/sessions/:session_id',
    { config, schema: { hide: true, params: z.object({ session_id: idInPath }) } },
    async (request, reply) => {
      const { session } = accountCallerOf(request);
      if (!session) return sendProblem(request, reply, FOR_USERS);
      const wanted = { ...session, sessionId: request.params.session_id };
      // Visitors of the demo share its user.
      if (session.way === 'demo' && wanted.sessionId !== session.sessionId)
        return sendProblem(request, reply, notFound('session'));
      const isEnded = await endConsoleSession(database, wanted, originOf(request), now());
      if (!isEnded) return sendProblem(request, reply, notFound('session'));
      return reply.code(204).send();
    },
  );
}

const FOR_USERS: Problem = {
  code: 'forbidden',
  message: 'this call needs a session of the console, not a token; sign in to the console',
};
