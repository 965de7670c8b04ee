/**
 * Users of an account: invited, changed, removed, and helped when they are locked out. Refusals that keep an
 * account_admin in the account are in `user-changes.ts` of `database`.
 *
 * A new user proves the address by the mailed code of the first sign-in. Invitations go to any address, so an account
 * sends a hundred a day at most. The demo is open to everyone, so only users who sign in by mail may change its users:
 * its visitors cannot mail people in its name, or take the demo from the next one. A visitor may make a token too, so
 * no token of the demo's accounts will do.
 */
import type { Database } from '@sluice/database/connection/connection';
import { isDemoAccount } from '@sluice/database/changes/demo-account';
import { isTokenOfUser, resetSecondFactor } from '@sluice/database/users/second-factors';
import {
  changeUser,
  endUserSessions,
  inviteUser,
  removeUser,
  type UserRefusal,
} from '@sluice/database/users/user-changes';
import { findUser } from '@sluice/database/users/users';
import { ROLES } from '@sluice/domain/accounts/account';
import type { FastifyContextConfig, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  accountFailures,
  accountReadFailures,
  badBody,
  conflicting,
  idInPath,
} from '../http/fields.ts';
import { notFound, type Problem, validationFailed } from '../http/problem.ts';
import { email, int32, name, SOME_FIELD } from './account-fields.ts';
import { refuseBound } from './credential-reach.ts';
import { user as userShape, userToWire } from './users.ts';

export interface UserEffects {
  readonly database: Database;
  readonly now: () => number;
}

const PATH = '/v1/accounts/:account_id/users';
const DAY_MS = 86_400_000;
const INVITATIONS_PER_DAY = 100;
const WORKSPACE_COUNT_MAX = 1_000;

const role = z.enum(ROLES);
const environmentIds = z
  .array(int32)
  .max(WORKSPACE_COUNT_MAX)
  .meta({ description: 'All workspaces of the user, each of the account.' });
const invitation = z
  .strictObject({
    email,
    first_name: name.optional(),
    last_name: name.optional(),
    role,
    environment_ids: environmentIds,
  })
  .meta({
    id: 'UserInvitation',
    requestExamples: [
      { email: 'grace@example.com', first_name: 'Grace', role: 'member', environment_ids: [1] },
    ],
  });
const change = z
  .strictObject({ role: role.optional(), environment_ids: environmentIds.optional() })
  .refine((given) => Object.keys(given).length > 0, {
    error: 'must have at least one field to change',
  })
  .meta({ ...SOME_FIELD, id: 'UserChange', requestExamples: [{ role: 'billing_admin' }] });
const ofUser = z.object({ account_id: idInPath, user_id: idInPath });
const answered = z.object({ user: userShape });
const tags = ['accounts'];

/** On a scope that `guardAccounts` was called on. */
export function registerUserChanges(scope: ApiServer, { database, now }: UserEffects): void {
  const refuseInDemo = async (request: FastifyRequest): Promise<Problem | undefined> => {
    const { accountId, session } = accountCallerOf(request);
    if (session?.way === 'code') return undefined;
    return (await isDemoAccount(database, accountId)) ? OF_DEMO : undefined;
  };
  const config = { access: { role: 'account_admin', refuse: refuseInDemo } } as const;
  const configOfGiving = {
    access: {
      role: 'account_admin',
      refuse: (request) => refuseBound(accountCallerOf(request)) ?? refuseInDemo(request),
    },
  } as const satisfies FastifyContextConfig;
  const invitations = new CallLimit({
    name: 'invitations of account',
    countMax: INVITATIONS_PER_DAY,
    windowMs: DAY_MS,
    now,
    takeCalls: takeCallsIn(database),
  });

  scope.post(
    PATH,
    {
      config: configOfGiving,
      schema: {
        tags,
        summary: 'Invite a user',
        description: `By mail, also one who was removed. An account may invite ${INVITATIONS_PER_DAY} users a day.`,
        params: z.object({ account_id: idInPath }),
        body: invitation,
        response: { 200: answered, ...accountFailures, ...badBody },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const { isExceeded, resetSeconds } = await invitations.take(accountId);
      if (isExceeded)
        return sendProblem(request, reply, { ...TOO_MANY, retryAfterSeconds: resetSeconds });
      const given = request.body;
      const user = await inviteUser(
        database,
        accountId,
        {
          email: given.email,
          firstName: given.first_name ?? '',
          lastName: given.last_name ?? '',
          role: given.role,
          environmentIds: given.environment_ids,
        },
        originOf(request),
        now(),
      );
      if (typeof user === 'string') return sendProblem(request, reply, REFUSALS[user]);
      return reply.send({ user: userToWire(user) });
    },
  );

  scope.put(
    `${PATH}/:user_id`,
    {
      config: configOfGiving,
      schema: {
        tags,
        summary: 'Change the role or workspaces of a user',
        description: 'An account keeps an active `account_admin`.',
        params: ofUser,
        body: change,
        response: { 200: answered, ...accountFailures, ...conflicting, ...badBody },
      },
    },
    async (request, reply) => {
      const user = await changeUser(
        database,
        accountCallerOf(request).accountId,
        request.params.user_id,
        { role: request.body.role, environmentIds: request.body.environment_ids },
        originOf(request),
        now(),
      );
      if (typeof user === 'string') return sendProblem(request, reply, REFUSALS[user]);
      return reply.send({ user: userToWire(user) });
    },
  );

  scope.delete(
    `${PATH}/:user_id`,
    {
      config,
      schema: {
        tags,
        summary: 'Remove a user',
        description:
          'Ends the sessions and programs of the user. The owner and the last `account_admin` stay.',
        params: ofUser,
        response: { 204: z.undefined(), ...conflicting, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const { user_id: userId } = request.params;
      const user = await removeUser(database, accountId, userId, originOf(request), now());
      if (typeof user === 'string') return sendProblem(request, reply, REFUSALS[user]);
      return reply.code(204).send();
    },
  );

  scope.delete(
    `${PATH}/:user_id/sessions`,
    {
      config,
      schema: {
        tags,
        summary: 'End the sessions of a user',
        description: 'Also the programs that the user has let in.',
        params: ofUser,
        response: {
          200: z.object({ ended: z.int(), programs_ended: z.int() }),
          ...accountReadFailures,
        },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const { user_id: userId } = request.params;
      const ended = await endUserSessions(database, accountId, userId, originOf(request), now());
      if (!ended) return sendProblem(request, reply, notFound('user'));
      return reply.send({ ended: ended.sessionCount, programs_ended: ended.programCount });
    },
  );

  scope.delete(
    `${PATH}/:user_id/second_factor`,
    {
      config,
      schema: {
        tags,
        summary: 'Take the second factor from a user who has lost it',
        description:
          'Ends the sessions and programs of the user. Users remove their own in the console.',
        params: ofUser,
        response: { 204: z.undefined(), ...conflicting, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId, session, credentialId } = accountCallerOf(request);
      const { user_id: userId } = request.params;
      const key = { accountId, userId };
      // A session alone must not take the factor from its user, nor a token that the session could make.
      if (
        session?.userId === userId ||
        (credentialId !== null && (await isTokenOfUser(database, key, credentialId)))
      )
        return sendProblem(request, reply, OWN_FACTOR);
      if (!(await findUser(database, accountId, userId)))
        return sendProblem(request, reply, notFound('user'));
      if (!(await resetSecondFactor(database, key, originOf(request), now())))
        return sendProblem(request, reply, NO_FACTOR);
      return reply.code(204).send();
    },
  );
}

const refusedField = (field: string, message: string): Problem =>
  validationFailed([
    { field, reason: 'invalid', message: `${field} ${message}`, source: { pointer: `/${field}` } },
  ]);

const REFUSALS: Readonly<Record<UserRefusal, Problem>> = {
  email_taken: refusedField(
    'email',
    'belongs to a user of this account already; send another address',
  ),
  no_workspace: refusedField('environment_ids', 'must be workspaces of the account'),
  last_admin: {
    code: 'conflict',
    message: 'this is the last active account_admin; give another user this role first',
  },
  owner: {
    code: 'conflict',
    message:
      'the user is the owner of the account: make another active user the owner first, by PUT /v1/accounts/{account_id} with account.owner_user_id',
  },
  no_user: notFound('user'),
  no_account: notFound('account'),
};

const OF_DEMO: Problem = {
  code: 'forbidden',
  message:
    'the demo, which everybody may open, lets only users with a mailed code change its users; sign in with one',
};

const OWN_FACTOR: Problem = {
  code: 'conflict',
  message:
    'you remove your own second factor in your settings, with one of its codes; a token that you made does not remove it',
};

const NO_FACTOR: Problem = {
  code: 'conflict',
  message: 'the user has no second factor to remove',
};

const TOO_MANY: Problem = {
  code: 'rate_limited',
  message: `an account may invite ${INVITATIONS_PER_DAY} users a day; try again after the time in Retry-After`,
};
