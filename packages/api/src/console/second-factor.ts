/**
 * The second factor of a user: `/console/session/second_factor` gives it at the sign-in, `/console/second_factor` sets it
 * up, replaces its recovery codes and removes it.
 *
 * These routes are open to incomplete sessions, as far as each needs. With a mailed code alone a user who has a factor
 * can only give it, and a user without one can only set it up. Codes are counted by user, right ones too, for every
 * use: a session that is complete guesses no better. A factor that is accepted gives the session another secret.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { ConsoleSession } from '@sluice/database/users/console-sessions';
import {
  confirmSecondFactor,
  findSecondFactor,
  type GivenFactor,
  giveUpSecondFactor,
  passSecondFactor,
  replaceRecoveryCodes,
  startSecondFactor,
} from '@sluice/database/users/second-factors';
import { recordFailedSignIn } from '@sluice/database/users/failed-sign-ins';
import { secondFactorContext } from '@sluice/domain/accounts/second-factor';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import {
  fromBase32,
  newPasswordSecret,
  newRecoveryCodes,
  passwordUri,
  plainRecoveryCode,
  stepOfPassword,
} from '@sluice/platform/secrets/one-time-password';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import { newSessionCookie, readSessionCookie, setCookieHeader } from '../auth/session-cookie.ts';
import { SECOND_FACTOR_MISSING, type ReadSession } from '../auth/session-door.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { type Problem, validationFailed } from '../http/problem.ts';
import { callOf, HIDDEN } from './console-call.ts';
import { renewSecret } from './kept-id-token.ts';

export interface SecondFactorEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  readonly now: () => number;
}

/** Ten of a million, three of which are good at a moment: in a year of trying each hour one in four finds one, by mail codes. */
const TRIES_PER_HOUR = 10;
const HOUR_MS = 3_600_000;

const appCode = z
  .string()
  .trim()
  .regex(/^\d{6}$/, 'must be six digits');
const appCodeInput = z.strictObject({ code: appCode });
/** As it is printed, in any case, with dashes or blanks or without. */
const recoveryCode = z
  .string()
  .trim()
  .regex(/^(?:[A-Za-z2-7][\s-]?){15}[A-Za-z2-7]$/, 'must be one of the recovery codes');
/** One of the two. */
const factorInput = z
  .strictObject({ code: appCode.optional(), recovery_code: recoveryCode.optional() })
  .refine((given) => (given.code === undefined) !== (given.recovery_code === undefined), {
    path: ['code'],
    message: 'is required, or recovery_code in its place',
  });

type UserSession = ConsoleSession & { readonly userId: number };

export function registerSecondFactor(
  scope: ApiServer,
  { database, encryptedText, now }: SecondFactorEffects,
  readSession: ReadSession,
): void {
  const tries = new CallLimit({
    name: 'second factor of',
    countMax: TRIES_PER_HOUR,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });
  scope.get('/console/second_factor', { schema: HIDDEN }, (request, reply) =>
    withSession(request, reply, 'complete', async (session) => {
      const factor = await findSecondFactor(database, session);
      return reply.send({
        is_enabled: factor?.isConfirmed === true,
        recovery_codes_left: factor?.isConfirmed ? factor.recoveryCodeCount : 0,
      });
    }),
  );

  scope.post(
    '/console/session/second_factor',
    { schema: { ...HIDDEN, body: factorInput } },
    (request, reply) =>
      withSession(request, reply, 'needs_code', async (session) => {
        const given = await readFactor(request, reply, session, request.body);
        if (!given) return reply;
        const { cookie, ...change } = await renewCookie(request, session);
        const outcome = await passSecondFactor(
          database,
          change,
          given,
          originOf(request, session),
          now(),
        );
        if (outcome === 'used') return refuseFactor(request, reply, session, given);
        return reply.header('set-cookie', setCookieHeader(request, cookie)).code(204).send();
      }),
  );

  scope.post('/console/second_factor/setup', { schema: HIDDEN }, (request, reply) =>
    withSession(request, reply, 'needs_setup', async (session) => {
      const secret = newPasswordSecret();
      const context = secondFactorContext(session.accountId, session.userId);
      if (!(await startSecondFactor(database, session, encryptedText.encrypt(secret, context))))
        return sendProblem(request, reply, SET_UP_ALREADY);
      return reply.send({ secret, uri: passwordUri(secret, session.name) });
    }),
  );

  scope.post(
    '/console/second_factor',
    { schema: { ...HIDDEN, body: appCodeInput } },
    (request, reply) =>
      withSession(request, reply, 'needs_setup', async (session) => {
        const refusal = await countTry(session);
        if (refusal) return sendProblem(request, reply, refusal);
        const factor = await findSecondFactor(database, session);
        if (!factor || factor.isConfirmed)
          return sendProblem(request, reply, factor ? SET_UP_ALREADY : NOT_BEGUN);
        const step = stepOf(session, factor.secret, request.body.code);
        if (step === undefined) return sendProblem(request, reply, INVALID_FACTOR);
        const codes = newRecoveryCodes();
        const { cookie, ...change } = await renewCookie(request, session);
        const outcome = await confirmSecondFactor(
          database,
          change,
          { secret: factor.secret, step, codeHashes: codes.map(hashRecoveryCode) },
          originOf(request, session),
          now(),
        );
        if (outcome === 'changed') return sendProblem(request, reply, SET_UP_ALREADY);
        return reply
          .header('set-cookie', setCookieHeader(request, cookie))
          .send({ recovery_codes: codes });
      }),
  );

  scope.post(
    '/console/second_factor/recovery_codes',
    { schema: { ...HIDDEN, body: appCodeInput } },
    (request, reply) =>
      withSession(request, reply, 'complete', async (session) => {
        const given = await readFactor(request, reply, session, request.body);
        if (!given) return reply;
        const codes = newRecoveryCodes();
        const outcome = await replaceRecoveryCodes(
          database,
          session,
          given,
          codes.map(hashRecoveryCode),
          originOf(request, session),
          now(),
        );
        if (outcome === 'changed') return refuseFactor(request, reply, session, given);
        return reply.send({ recovery_codes: codes });
      }),
  );

  scope.delete(
    '/console/second_factor',
    { schema: { ...HIDDEN, body: factorInput } },
    (request, reply) =>
      withSession(request, reply, 'complete', async (session) => {
        const given = await readFactor(request, reply, session, request.body);
        if (!given) return reply;
        const origin = originOf(request, session);
        const outcome = await giveUpSecondFactor(database, session, given, origin, now());
        if (outcome === 'required') return sendProblem(request, reply, REQUIRED);
        if (outcome === 'changed') return refuseFactor(request, reply, session, given);
        return reply.code(204).send();
      }),
  );

  /**
   * Does the work for the user of the session.
   *
   * @param standing - an incomplete session must wait for just this; one that is complete may do all but give a code.
   */
  async function withSession(
    request: FastifyRequest,
    reply: FastifyReply,
    standing: ConsoleSession['standing'],
    work: (session: UserSession) => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    const reading = await readSession(request);
    if (reading.outcome === 'refused') return sendProblem(request, reply, reading.problem);
    if (reading.outcome === 'none') return sendProblem(request, reply, NO_SESSION);
    const { session } = reading;
    const { userId } = session;
    const isOfUser = session.way === 'code' || session.way === 'provider';
    if (userId === null || !isOfUser) return sendProblem(request, reply, FOR_USERS);
    if (reading.outcome === 'incomplete' && session.standing !== standing)
      return sendProblem(request, reply, SECOND_FACTOR_MISSING);
    if (reading.outcome === 'open' && standing === 'needs_code')
      return sendProblem(request, reply, GIVEN_ALREADY);
    return work({ ...session, userId });
  }

  async function renewCookie(request: FastifyRequest, session: UserSession) {
    const cookie = newSessionCookie(session.accountId);
    const before = readSessionCookie(request) ?? '';
    const secret = await renewSecret(database, session.accountId, before, cookie);
    return { cookie, session, ...secret };
  }

  async function countTry({ userId }: UserSession): Promise<Problem | undefined> {
    const { isExceeded, resetSeconds } = await tries.take(userId);
    return isExceeded ? { ...TOO_MANY_TRIES, retryAfterSeconds: resetSeconds } : undefined;
  }

  /** Counts the try; undefined if it was answered, since the code is no good. */
  async function readFactor(
    request: FastifyRequest,
    reply: FastifyReply,
    session: UserSession,
    given: z.infer<typeof factorInput>,
  ): Promise<GivenFactor | undefined> {
    const refusal = await countTry(session);
    if (refusal) {
      await sendProblem(request, reply, refusal);
      return undefined;
    }
    const { code = '', recovery_code: recovery } = given;
    if (recovery !== undefined) return { codeHash: hashRecoveryCode(recovery) };
    const factor = await findSecondFactor(database, session);
    const step = factor?.isConfirmed ? stepOf(session, factor.secret, code) : undefined;
    if (step !== undefined) return { step };
    await refuseFactor(request, reply, session, { step });
    return undefined;
  }

  /** Answers that it is no good, and leaves a trace of it. */
  async function refuseFactor(
    request: FastifyRequest,
    reply: FastifyReply,
    session: UserSession,
    given: GivenFactor | { readonly step: undefined },
  ): Promise<FastifyReply> {
    const factor = 'codeHash' in given ? 'recovery_code' : 'app_code';
    await recordFailedSignIn(database, session, factor, callOf(request), now());
    return sendProblem(request, reply, INVALID_FACTOR);
  }

  function stepOf(session: UserSession, encrypted: string, code: string): number | undefined {
    const context = secondFactorContext(session.accountId, session.userId);
    return stepOfPassword(fromBase32(encryptedText.decrypt(encrypted, context)), code, now());
  }
}

const hashRecoveryCode = (text: string): Buffer => hashSecret(plainRecoveryCode(text));

const originOf = (request: FastifyRequest, { userId, sessionId }: UserSession) => ({
  ...callOf(request),
  sessionId,
  actor: { type: 'user', userId } as const,
});

const NO_SESSION: Problem = {
  code: 'unauthorized',
  message: 'the call needs a sign-in; sign in first',
};

const FOR_USERS: Problem = {
  code: 'forbidden',
  message:
    'a second factor belongs to a user; sign in with a mailed code or by your identity provider',
};

const GIVEN_ALREADY: Problem = {
  code: 'conflict',
  message: 'the sign-in is already complete; the second factor is not asked again',
};

const SET_UP_ALREADY: Problem = {
  code: 'conflict',
  message: 'a second factor is set up already: remove it first, or begin again',
};

const NOT_BEGUN: Problem = {
  code: 'conflict',
  message: 'begin the setup of a second factor first',
};

const REQUIRED: Problem = {
  code: 'conflict',
  message:
    'the account requires two factors: an account_admin can reset yours, and you set up another',
};

const TOO_MANY_TRIES: Problem = {
  code: 'too_many_attempts',
  message: `${TRIES_PER_HOUR} codes an hour may be tried; try again later`,
};

const INVALID_FACTOR: Problem = {
  ...validationFailed([
    {
      field: 'code',
      reason: 'invalid',
      message:
        'the code is wrong or was used before, or the clock of the phone is more than 30 seconds wrong; wait for the next code',
      source: { pointer: '/code' },
    },
  ]),
  code: 'invalid_code',
};
