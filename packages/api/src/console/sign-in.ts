/**
 * Signing in to the console, and out: `/console/session`. The console's own interface, which the reference leaves out.
 *
 * A start is answered the same whether the address is a user's or not, with the same work done; the mail is written
 * later (`outbox-relay.ts`). A wrong, expired, used or unknown code is one answer. Limits are those of signups, whose
 * reasons are in `signup.ts`. Each sign-in has a new secret, and the session that the browser had is ended, so a
 * secret that was put into a browser beforehand opens nothing.
 */
import {
  endConsoleSession,
  findDemoUser,
  findUserByEmail,
  openConsoleSession,
  recordFailedSignIn,
} from '@sluice/database/accounts/console-sessions';
import { countSignInAttempt, startSignIn } from '@sluice/database/accounts/sign-in-codes';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { email } from '../accounts/account-fields.ts';
import { SIGNUP_LIMITS, TRIES_PER_HOUR_AND_IP } from '../accounts/signup.ts';
import { CODE_LIFETIME_MS, isCode } from '../accounts/signup-code.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import { newSessionCookie, refuseVisit, setCookieHeader } from '../auth/session-cookie.ts';
import { DEMO_TOKEN_HASH, isForDemo, type ReadSession } from '../auth/session-door.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { validationFailed, type Problem } from '../http/problem.ts';

export interface SignInEffects {
  readonly database: Database;
  readonly secret: string;
  readonly now: () => number;
  readonly demoHosts: readonly string[];
}

const HOUR_MS = 3_600_000;
/** Of the console's pages, for which the API has no reference. */
const hidden = { hide: true } as const;

const signInInput = z.union([
  z.strictObject({ demo: z.literal(true) }),
  z.strictObject({ email, code: z.string().regex(/^\d{6}$/, 'must be six digits') }),
]);

export function registerSignIn(
  scope: ApiServer,
  effects: SignInEffects,
  readSession: ReadSession,
): void {
  const { database, now } = effects;
  const tries = new CallLimit({
    name: 'sign-in code from',
    countMax: TRIES_PER_HOUR_AND_IP,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });
  // Also before there is a session: another page must not sign a browser in, nor send mails by it.
  scope.addHook('onRequest', async (request, reply) => {
    const refusal = refuseVisit(request);
    return refusal && sendProblem(request, reply, refusal);
  });

  scope.get('/console/session', { schema: hidden }, async (request, reply) => {
    const reading = await readSession(request);
    return reply.send({
      is_signed_in: reading.outcome === 'open',
      has_demo: (await findDemo(effects, request)) !== undefined,
    });
  });

  scope.post(
    '/console/session/code',
    { schema: { ...hidden, body: z.strictObject({ email }) } },
    async (request, reply) => {
      const given = { email: request.body.email, ip: callerNetwork(request.ip) };
      const outcome = await startSignIn(database, given, SIGNUP_LIMITS, now());
      if (outcome === 'too_many') return sendProblem(request, reply, TOO_MANY_STARTS);
      return reply.send({ expires_in: CODE_LIFETIME_MS / 1000 });
    },
  );

  scope.post(
    '/console/session',
    { schema: { ...hidden, body: signInInput } },
    async (request, reply) => {
      const given = request.body;
      if ('demo' in given) {
        const user = await findDemo(effects, request);
        if (!user) return sendProblem(request, reply, NO_DEMO);
        return open(request, reply, { ...user, way: 'demo' });
      }
      const { isExceeded, resetSeconds } = await tries.take(callerNetwork(request.ip));
      if (isExceeded)
        return sendProblem(request, reply, { ...TOO_MANY_TRIES, retryAfterSeconds: resetSeconds });
      const kept = await countSignInAttempt(database, given.email, now());
      const compared = kept && { id: kept.signInId, codeHmac: kept.codeHmac };
      const isRight = isCode(effects.secret, 'sign-in code', compared, given.email, given.code);
      const user = await findUserByEmail(database, given.email);
      if (!isRight || !kept || !user) {
        // Not awaited: the time of the answer must not tell whether the address is a user's.
        if (user) noteFailure(request, user);
        return sendProblem(request, reply, INVALID_CODE);
      }
      return open(request, reply, { ...user, way: 'code', signInId: kept.signInId });
    },
  );

  scope.delete('/console/session', { schema: hidden }, async (request, reply) => {
    await endCurrent(request);
    return reply.header('set-cookie', setCookieHeader(request)).code(204).send();
  });

  async function open(
    request: FastifyRequest,
    reply: FastifyReply,
    wanted: Omit<Parameters<typeof openConsoleSession>[1], 'sessionHash'>,
  ): Promise<FastifyReply> {
    const cookie = newSessionCookie(wanted.accountId);
    const opened = { ...wanted, sessionHash: hashSecret(cookie) };
    const outcome = await openConsoleSession(database, opened, callOf(request), now());
    if (outcome === 'one_factor') return sendProblem(request, reply, ONE_FACTOR);
    if (outcome !== 'opened') return sendProblem(request, reply, INVALID_CODE);
    await endCurrent(request);
    return reply.header('set-cookie', setCookieHeader(request, cookie)).code(204).send();
  }

  /** The session that the browser has, if any. */
  async function endCurrent(request: FastifyRequest): Promise<void> {
    const reading = await readSession(request);
    if (reading.outcome !== 'open') return;
    const { userId } = reading.session;
    const origin = { ...callOf(request), actor: { type: 'user', userId } as const };
    await endConsoleSession(database, reading.session, origin, now());
  }

  function noteFailure(request: FastifyRequest, user: { accountId: number; userId: number }): void {
    recordFailedSignIn(database, user, callOf(request), now()).catch((error: unknown) =>
      request.log.warn({ error }, 'a failed sign-in was not recorded'),
    );
  }
}

/** Whom the button "Open the demo" signs in; undefined where the demo is not open to this call. */
async function findDemo({ database, demoHosts }: SignInEffects, request: FastifyRequest) {
  if (!isForDemo(request, demoHosts)) return undefined;
  return findDemoUser(database, DEMO.accountId, DEMO_TOKEN_HASH);
}

/** For the audit log. */
const callOf = (request: FastifyRequest) => ({
  ipAddr: request.ip,
  userAgent: request.headers['user-agent'] ?? null,
  requestId: request.id,
});

const NO_DEMO: Problem = {
  code: 'forbidden',
  message: 'the demo is not open here: sign in with a mailed code',
};

const ONE_FACTOR: Problem = {
  code: 'forbidden',
  message:
    'this account requires two factors, and a mailed code is one: an account_admin can switch that off with POST /v1/accounts/{account_id}/2fa_required/disable and a token',
};

const TOO_MANY_STARTS: Problem = {
  code: 'rate_limited',
  message: 'too many codes were asked for from this address; try again later',
  retryAfterSeconds: HOUR_MS / 1000,
};

const TOO_MANY_TRIES: Problem = {
  code: 'too_many_attempts',
  message: 'too many codes were tried from this address; try again later',
};

const INVALID_CODE: Problem = {
  ...validationFailed([
    {
      field: 'code',
      reason: 'invalid',
      message: 'the code is not good: wrong, expired, used, or tried too often; ask for a new one',
      source: { pointer: '/code' },
    },
  ]),
  code: 'invalid_code',
};
