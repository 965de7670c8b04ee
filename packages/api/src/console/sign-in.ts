/**
 * Signing in to the console: `/console/session`. The console's own interface, which the reference leaves out.
 *
 * A start is answered the same whether the address is a user's or not, with the same work done; the mail is written
 * later (`outbox-relay.ts`). A wrong, expired, used or unknown code, and a code of another browser, get one answer. The
 * limits are in `code-browser.ts`. Each sign-in has a new secret, and the session that the browser had is ended, so a
 * secret that was put into a browser beforehand opens no session. If a second factor is missing the session is
 * incomplete, and goes on with `second-factor.ts`. Any account can invite any address. So the mail names the account that
 * the code leads to, and with several invitations the person chooses the account after the right code.
 *
 * A token of the account that is pasted opens a session too, which counts among the token's calls. The token itself is
 * not kept.
 */
import { findAccountToken } from '@sluice/database/accounts/account-tokens';
import { recordFailedSignIn } from '@sluice/database/users/failed-sign-ins';
import {
  findDemoUser,
  openTokenSession,
  openUserSession,
} from '@sluice/database/users/session-openings';
import { findUsersByEmail } from '@sluice/database/users/users-of-address';
import {
  countSignInAttempt,
  findOperatorSignIn,
  startSignIn,
  uncountSignInAttempt,
} from '@sluice/database/users/sign-in-codes';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { email, int32 } from '../accounts/account-fields.ts';
import { TRIES_PER_HOUR_AND_IP } from '../accounts/signup.ts';
import { CODE_LIFETIME_MS, isCode } from '../accounts/signup-code.ts';
import { createTokenRate } from '../auth/account-guard.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import { isForDemo } from '../auth/demo-guard.ts';
import { isAllowedFrom } from '../auth/ip-allowlist.ts';
import { createUseRecorder } from '../auth/record-use.ts';
import type { RefusedCredentials } from '../auth/refused-credentials.ts';
import { newSessionCookie, refuseVisit } from '../auth/session-cookie.ts';
import { DEMO_TOKEN_HASH, type ReadSession } from '../auth/session-door.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { beginSession } from './begin-session.ts';
import {
  bindCode,
  browserHashOf,
  isKnownBrowser,
  rememberBrowser,
  SIGN_IN_LIMITS,
} from './code-browser.ts';
import { callOf, HIDDEN } from './console-call.ts';
import { validationFailed, type Problem } from '../http/problem.ts';

export interface SignInEffects {
  readonly database: Database;
  readonly secret: string;
  readonly now: () => number;
  readonly demoHosts: readonly string[];
  readonly monotonicNow: () => number;
  readonly refusedCredentials: RefusedCredentials;
  /** Calls that one token may make a minute, at all processes together. 0: no limit. */
  readonly ratePerMinute: number;
}

const HOUR_MS = 3_600_000;
const TOKEN_LENGTH_MAX = 512;
/** Sessions of the demo that one IP address, or one network of IPv6, may open. */
const DEMOS_PER_HOUR_AND_IP = 300;
/** Of `sluice users code`. */
const OPERATOR_CODE_LENGTH = 16;

const signInInput = z.union([
  z.strictObject({ demo: z.literal(true) }),
  z.strictObject({ token: z.string().min(1).max(TOKEN_LENGTH_MAX) }),
  z.strictObject({
    email,
    code: z
      .string()
      .regex(/^(\d{6}|\d{16})$/, 'must be six digits, or the sixteen of the operator'),
    /** Chosen among several invitations. */
    account_id: int32.optional(),
  }),
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
  const demoTries = new CallLimit({
    name: 'demo opened from',
    countMax: DEMOS_PER_HOUR_AND_IP,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });
  const countCall = createTokenRate(effects);
  const noteUse = createUseRecorder(effects);
  // Also before there is a session: another page must not sign a browser in, nor send mails by it.
  scope.addHook('onRequest', async (request, reply) => {
    const refusal = refuseVisit(request);
    return refusal && sendProblem(request, reply, refusal);
  });

  scope.get('/console/session', { schema: HIDDEN }, async (request, reply) => {
    const reading = await readSession(request);
    return reply.send({
      is_signed_in: reading.outcome === 'open',
      /** The missing step of an incomplete session. */
      second_factor: reading.outcome === 'incomplete' ? reading.session.standing : null,
      has_demo: (await findDemo(effects, request)) !== undefined,
    });
  });

  scope.post(
    '/console/session/code',
    { schema: { ...HIDDEN, body: z.strictObject({ email }) } },
    async (request, reply) => {
      const { email: address } = request.body;
      const { header, browserHash } = bindCode(request);
      const given = {
        email: address,
        ip: callerNetwork(request.ip),
        browserHash,
        earlierBrowserHash: browserHashOf(request),
        isKnownBrowser: isKnownBrowser(effects.secret, request, address),
      };
      const outcome = await startSignIn(database, given, SIGN_IN_LIMITS, now());
      if (outcome === 'too_many') return sendProblem(request, reply, TOO_MANY_STARTS);
      return reply.header('set-cookie', header).send({ expires_in: CODE_LIFETIME_MS / 1000 });
    },
  );

  scope.post(
    '/console/session',
    { schema: { ...HIDDEN, body: signInInput } },
    async (request, reply) => {
      const given = request.body;
      if ('demo' in given) {
        const user = await findDemo(effects, request);
        if (!user) return sendProblem(request, reply, NO_DEMO);
        const { isExceeded, resetSeconds } = await demoTries.take(callerNetwork(request.ip));
        if (isExceeded)
          return sendProblem(request, reply, {
            ...TOO_MANY_DEMOS,
            retryAfterSeconds: resetSeconds,
          });
        return open(request, reply, { ...user, way: 'demo' });
      }
      if ('token' in given) return openByToken(request, reply, given.token);
      const { isExceeded, resetSeconds } = await tries.take(callerNetwork(request.ip));
      if (isExceeded)
        return sendProblem(request, reply, { ...TOO_MANY_TRIES, retryAfterSeconds: resetSeconds });
      const signInId = await signInOf(request, given);
      const users = await findUsersByEmail(database, given.email, given.account_id);
      const [first] = users;
      if (signInId === undefined || !first) {
        // Not awaited: the time of the answer must not show whether the address is a user's.
        noteFailure(request, given.email);
        return sendProblem(request, reply, INVALID_CODE);
      }
      // The code is not used, and is good for the choice.
      if (users.length > 1) {
        await uncountSignInAttempt(database, signInId);
        return reply.send({
          accounts: users.map(({ accountId, accountName }) => ({
            id: accountId,
            name: accountName,
          })),
        });
      }
      const known = rememberBrowser(effects.secret, request, given.email);
      const { accountId, userId } = first;
      return open(request, reply, { accountId, userId, way: 'code', signInId }, [known]);
    },
  );

  /** The sign-in that the code is right for. Counts the attempt at a mailed one. */
  async function signInOf(
    request: FastifyRequest,
    { email: address, code }: { readonly email: string; readonly code: string },
  ): Promise<string | undefined> {
    if (code.length === OPERATOR_CODE_LENGTH) {
      const wanted = { email: address, codeHash: hashSecret(code) };
      return findOperatorSignIn(database, wanted, now());
    }
    const wanted = { email: address, browserHash: browserHashOf(request) };
    const kept = await countSignInAttempt(database, wanted, now());
    const compared = kept && { id: kept.signInId, codeHmac: kept.codeHmac };
    return isCode(effects.secret, 'sign-in code', compared, address, code)
      ? kept?.signInId
      : undefined;
  }

  async function open(
    request: FastifyRequest,
    reply: FastifyReply,
    wanted: Omit<Parameters<typeof openUserSession>[1], 'sessionHash'>,
    otherCookies: readonly string[] = [],
  ): Promise<FastifyReply> {
    const cookie = newSessionCookie(wanted.accountId);
    const opened = { ...wanted, sessionHash: hashSecret(cookie) };
    const outcome = await openUserSession(database, opened, callOf(request), now());
    if (outcome === 'used' || outcome === 'no_user')
      return sendProblem(request, reply, INVALID_CODE);
    if (outcome === 'provider_required') return sendProblem(request, reply, PROVIDER_REQUIRED);
    for (const header of otherCookies) void reply.header('set-cookie', header);
    return beginSession(effects, readSession, request, reply, cookie);
  }

  async function openByToken(request: FastifyRequest, reply: FastifyReply, text: string) {
    if (DEMO_SECRETS.includes(text)) return sendProblem(request, reply, DEMO_BY_BUTTON);
    const secretHash = hashSecret(text);
    const token = await findAccountToken(database, secretHash);
    if (!token) return effects.refusedCredentials.refuse(request, reply, text, INVALID_TOKEN);
    const refusal = await countCall(reply, token.credentialId);
    if (refusal) return sendProblem(request, reply, refusal);
    if (!isAllowedFrom(request.ip, token.ipAllowlist)) {
      effects.refusedCredentials.note(request, 'ip_not_allowed', text);
      return sendProblem(request, reply, TOKEN_FROM_ELSEWHERE);
    }
    const cookie = newSessionCookie(token.accountId);
    const opened = { ...token, sessionHash: hashSecret(cookie) };
    const outcome = await openTokenSession(database, opened, callOf(request), now());
    if (outcome === 'two_factors') return sendProblem(request, reply, TOKEN_IS_ONE_FACTOR);
    if (outcome === 'provider_required') return sendProblem(request, reply, PROVIDER_REQUIRED);
    if (outcome === 'no_token') return sendProblem(request, reply, INVALID_TOKEN);
    noteUse(request, token);
    return beginSession(effects, readSession, request, reply, cookie);
  }

  /** In the log of the first account of the address, also if the call names another account. */
  function noteFailure(request: FastifyRequest, address: string): void {
    const record = async (): Promise<void> => {
      const [user] = await findUsersByEmail(database, address);
      if (user) await recordFailedSignIn(database, user, 'mailed_code', callOf(request), now());
    };
    record().catch((error: unknown) =>
      request.log.warn(
        { error },
        'a failed sign-in could not be recorded in the audit log; check that Postgres answers',
      ),
    );
  }
}

/** The user whom the button "Open the demo" signs in; undefined if the demo is not open to this call. */
async function findDemo({ database, demoHosts }: SignInEffects, request: FastifyRequest) {
  if (!isForDemo(request.headers, demoHosts)) return undefined;
  return findDemoUser(database, DEMO.accountId, DEMO_TOKEN_HASH);
}

const NO_DEMO: Problem = {
  code: 'forbidden',
  message: 'the demo is not open at this address; sign in with a mailed code',
};

const DEMO_BY_BUTTON: Problem = {
  code: 'forbidden',
  message: 'the tokens of the demo are public and open no session; use the button of the demo',
};

const INVALID_TOKEN: Problem = {
  code: 'unauthorized',
  message:
    'the token is not in force; use another token of a service account, which begins with sa_',
};

const TOKEN_FROM_ELSEWHERE: Problem = {
  code: 'ip_not_allowed',
  message: 'the token may not be used from this address; use an address of its ip_allowlist',
};

const TOKEN_IS_ONE_FACTOR: Problem = {
  code: 'forbidden',
  message:
    'this account requires two factors, and a token is only one; sign in with a mailed code and a code of your authenticator app. Programs continue to send the token in Authorization',
};

const PROVIDER_REQUIRED: Problem = {
  code: 'forbidden',
  message:
    'this account allows only its identity provider; enter your email address and continue to the provider',
};

const TOO_MANY_STARTS: Problem = {
  code: 'rate_limited',
  message: 'too many codes were asked for from this address; try again later',
  retryAfterSeconds: HOUR_MS / 1000,
};

const TOO_MANY_DEMOS: Problem = {
  code: 'rate_limited',
  message: 'the demo was opened too often from this address; try again later',
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
      message:
        'the code is wrong, expired or used, was tried too often, or was asked for in another browser; ask for a new one',
      source: { pointer: '/code' },
    },
  ]),
  code: 'invalid_code',
};
