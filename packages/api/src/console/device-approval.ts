/**
 * The user's half of a program's login (`device-login.ts`): the console shows which program waits with the code that the
 * user has typed, and the user lets it in or does not. Only a user may, in a session of the console: a token would make
 * another of itself, and the demo is everybody's. Codes are counted by user and by account, right ones too.
 *
 * Users of every role see the programs that act for them, and end them.
 */
import type { ConsoleSession } from '@sluice/database/users/console-sessions';
import type { Database } from '@sluice/database/connection/connection';
import { decideDeviceLogin, findWaitingDevice } from '@sluice/database/users/device-logins';
import { endProgram, listPrograms } from '@sluice/database/users/programs';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { int32 } from '../accounts/account-fields.ts';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { idInPath } from '../http/fields.ts';
import { notFound, type Problem, validationFailed } from '../http/problem.ts';
import { HIDDEN } from './console-call.ts';
import { hashUserCode } from './device-login.ts';

export interface DeviceApprovalEffects {
  readonly database: Database;
  readonly now: () => number;
}

const HOUR_MS = 3_600_000;
/** Of 25 billion codes: a guess has no chance. */
const TRIES_PER_HOUR = 20;
/** Of all users of an account: an account_admin, who can invite any number of users, does not guess more. */
const TRIES_PER_HOUR_AND_ACCOUNT = 1_000;

/** As it is printed, in any case, with the dash or without. */
const userCode = z
  .string()
  .trim()
  .toUpperCase()
  .transform((text) => text.replace(/^(.{4})[\s-](.{4})$/, '$1$2'))
  .refine((text) => /^[B-DF-HJ-NP-TV-XZ]{8}$/.test(text), 'must be the eight letters of the code');

/** On a scope that `guardAccounts` was called on. */
export function registerDeviceApproval(
  scope: ApiServer,
  { database, now }: DeviceApprovalEffects,
): void {
  const limitOf = (name: string, countMax: number) =>
    new CallLimit({ name, countMax, windowMs: HOUR_MS, now, takeCalls: takeCallsIn(database) });
  const tries = limitOf('device code of', TRIES_PER_HOUR);
  const triesOfAccount = limitOf('device code of account', TRIES_PER_HOUR_AND_ACCOUNT);
  const config = {
    access: {
      role: 'member',
      refuse: async (request) => {
        const session = sessionOf(request);
        if (!session) return FOR_USERS;
        const own = await tries.take(session.userId);
        const { isExceeded, resetSeconds } = own.isExceeded
          ? own
          : await triesOfAccount.take(session.accountId);
        return isExceeded ? { ...TOO_MANY, retryAfterSeconds: resetSeconds } : undefined;
      },
    },
  } satisfies Parameters<typeof scope.get>[1]['config'] & object;

  scope.post(
    '/console/device',
    { config, schema: { ...HIDDEN, body: z.strictObject({ code: userCode }) } },
    async (request, reply) => {
      const device = await findWaitingDevice(database, hashUserCode(request.body.code));
      if (!device) return sendProblem(request, reply, NO_DEVICE);
      return reply.send({
        client_name: device.clientName,
        ip_addr: device.ipAddr,
        is_same_network:
          device.ipAddr !== null && callerNetwork(device.ipAddr) === callerNetwork(request.ip),
        started_at: device.startedAt.toISOString(),
      });
    },
  );

  scope.post(
    '/console/device/decision',
    {
      config,
      schema: {
        ...HIDDEN,
        body: z.strictObject({
          code: userCode,
          approve: z.boolean(),
          environment_id: int32.nullable(),
        }),
      },
    },
    async (request, reply) => {
      const { code, approve: isApproved, environment_id: environmentId } = request.body;
      const session = sessionOf(request);
      if (!session) return sendProblem(request, reply, FOR_USERS);
      if (environmentId !== null && !session.environmentIds.includes(environmentId))
        return sendProblem(request, reply, NOT_YOURS);
      const { accountId, userId, sessionId } = session;
      const decision = { accountId, userId, environmentId, isApproved, sessionId };
      if (!(await decideDeviceLogin(database, hashUserCode(code), decision)))
        return sendProblem(request, reply, NO_DEVICE);
      return reply.code(204).send();
    },
  );

  const ofUser = {
    access: { role: 'member', refuse: (request) => (sessionOf(request) ? undefined : FOR_USERS) },
  } satisfies Parameters<typeof scope.get>[1]['config'] & object;

  scope.get('/console/programs', { config: ofUser, schema: HIDDEN }, async (request, reply) => {
    const session = sessionOf(request);
    if (!session) return sendProblem(request, reply, FOR_USERS);
    const programs = await listPrograms(database, session);
    return reply.send({
      programs: programs.map((each) => ({
        id: each.programId,
        name: each.name,
        environment_id: each.environmentId,
        created_at: each.createdAt.toISOString(),
        expires_at: each.expiresAt.toISOString(),
        last_used_at: each.lastUsedAt?.toISOString() ?? null,
        last_used_ip: each.lastUsedIp,
      })),
    });
  });

  scope.delete(
    '/console/programs/:program_id',
    { config: ofUser, schema: { ...HIDDEN, params: z.object({ program_id: idInPath }) } },
    async (request, reply) => {
      const session = sessionOf(request);
      if (!session) return sendProblem(request, reply, FOR_USERS);
      const { program_id: programId } = request.params;
      if (!(await endProgram(database, session, programId, originOf(request), now())))
        return sendProblem(request, reply, notFound('program'));
      return reply.code(204).send();
    },
  );
}

/** Of a user, who came in as one. */
function sessionOf(
  request: FastifyRequest,
): (ConsoleSession & { readonly userId: number }) | undefined {
  const { session } = accountCallerOf(request);
  if (!session || session.userId === null || session.way === 'demo') return undefined;
  return { ...session, userId: session.userId };
}

const FOR_USERS: Problem = {
  code: 'forbidden',
  message: 'a user lets a program in, signed in to the console: no token does, and not the demo',
};

const NO_DEVICE: Problem = {
  ...validationFailed([
    {
      field: 'code',
      reason: 'invalid',
      message:
        'no program waits with this code, which is wrong, used, or older than 10 minutes; begin the login again',
      source: { pointer: '/code' },
    },
  ]),
  code: 'invalid_code',
};

const NOT_YOURS: Problem = validationFailed([
  {
    field: 'environment_id',
    reason: 'invalid',
    message: 'environment_id must be a workspace of yours',
    source: { pointer: '/environment_id' },
  },
]);

const TOO_MANY: Problem = {
  code: 'too_many_attempts',
  message: `a user may try ${TRIES_PER_HOUR} codes an hour, and an account ${TRIES_PER_HOUR_AND_ACCOUNT}; try again later`,
};
