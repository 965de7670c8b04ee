/**
 * The guard of the account routes: bearer token → account and rights (`account-conventions.md` §3.1).
 *
 * Declare routes on a scope that `guardAccounts` was called on, each with `config: { access: { role } }` (and `scope`
 * if the role is not enough). In the handler read `accountCallerOf(request)`, and `originOf(request)` for the audit
 * log. A route without `access` keeps the process from starting. `:account_id` in a path is compared here. The handler
 * looks up everything else in a path **with** `accountCallerOf(request).accountId`, and answers 404 (`notFound`) if it
 * is another account's.
 * Order of the answers, all before the body is read: 401 without a token in force, 429 over the rate (`call-rate.ts`),
 * 404 if the path names another account, 403 for the token's addresses, a missing second factor, read-only mode, role or
 * scope. The 404 does not depend on whether that account exists, so neither body nor time shows it. A route's other
 * refusals follow once the body is read, and before a kept answer is sent ({@link refuseWhatIsBeyond}).
 */
import type { ConsoleSession } from '@sluice/database/users/console-sessions';
import type { Database } from '@sluice/database/connection/connection';
import {
  type AccountToken,
  findAccountToken,
  findAccountTokenById,
} from '@sluice/database/accounts/account-tokens';
import type { AccountActor, ChangeOrigin } from '@sluice/database/changes/record-change';
import { includesRole, ROLES, type Role, type Scope } from '@sluice/domain/accounts/account';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest } from 'fastify';
import { looksLikeAccessToken, readAccessToken, secretTagOf } from './access-token.ts';
import { takeCallsIn } from './call-limit.ts';
import { type CallRate, createCallRate } from './call-rate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { heldCallOf } from '../http/idempotency.ts';
import { refuseUse } from './restricted-use.ts';
import type { Problem } from '../http/problem.ts';
import { RecentAnswers } from './recent-answers.ts';
import { recordMisuse } from './record-misuse.ts';
import { createUseRecorder } from './record-use.ts';
import type { RefusedCredentials } from './refused-credentials.ts';
import { createSessionDoor, SECOND_FACTOR_MISSING, sessionSubject } from './session-door.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sourceOf } from '../serving/call-source.ts';

/** Requirements of a route on its caller. */
export interface Access {
  /** The lowest role that may call it. */
  readonly role: Role;
  /** Must be among the token's scopes, for every role. */
  readonly scope?: Scope;
  /** Reason to refuse the call, judged by its path and body; undefined if the caller may make it. */
  readonly refuse?: (request: FastifyRequest) => Problem | undefined | Promise<Problem | undefined>;
}

/**
 * Whose call it is, by the token's row or the session's; every statement made for it names this account. An access
 * token's may be narrower.
 */
export interface AccountCaller extends Omit<
  AccountToken,
  'credentialId' | 'serviceAccountId' | 'secretHash'
> {
  /** Of the token; null in a session of a user. */
  readonly credentialId: number | null;
  readonly serviceAccountId: number | null;
  /** Null for a token. */
  readonly session: ConsoleSession | null;
}

export interface AccountGuardEffects {
  readonly database: Database;
  /** Calls that one token may make a minute, at all processes together. 0: no limit. */
  readonly ratePerMinute: number;
  /** Signs access tokens, among other things (`API_SECRET`). */
  readonly secret: string;
  readonly now: () => number;
  /** Milliseconds that never go back, for caches. */
  readonly monotonicNow: () => number;
  readonly refusedCredentials: RefusedCredentials;
  /** Names for which the demo opens however a call came (`DEMO_HOSTS`). */
  readonly demoHosts: readonly string[];
  /** Accounts of the operator, whose admins see the installation in the console (`OPERATOR_ACCOUNT_IDS`). */
  readonly operatorAccountIds: readonly number[];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For account routes: who may call. */
    access?: Access;
  }
  interface FastifySchema {
    /** For the description: the lowest role of a user or a token that may call. */
    'x-sluice-role'?: Role;
  }
  interface FastifyRequest {
    /** Set by {@link guardAccounts}; null on routes outside its scope. */
    accountCaller: AccountCaller | null;
  }
}

const MINUTE_MS = 60_000;
const TOKEN_TTL_MS = 1_000;
const TOKEN_COUNT_MAX = 10_000;

/** The scheme in any case (RFC 9110 §11.1), then one token. */
const BEARER = /^bearer +([\w.~+/=-]{1,1024}) *$/i;

/** Guards every route that is declared on `scope` from now on. Call it once, before the first. */
export function guardAccounts(scope: ApiServer, effects: AccountGuardEffects): void {
  const authenticate = createAuthenticate(effects);
  const noteUse = createUseRecorder(effects);
  const countCall = createTokenRate(effects);
  const readSession = createSessionDoor(effects);
  const { database, now, refusedCredentials } = effects;
  /** @param text - the token; undefined in a session that it opened. */
  const noteRefused = (
    request: FastifyRequest,
    caller: Parameters<typeof recordMisuse>[2],
    { code }: Problem,
    text: string | undefined,
  ): void => {
    if (code === 'ip_not_allowed') refusedCredentials.note(request, 'ip_not_allowed', text);
    if (code !== 'not_found') return;
    refusedCredentials.note(request, 'other_account', text);
    // Not awaited: neither the answer nor its time may depend on it.
    recordMisuse(database, request, caller, now()).catch((error: unknown) =>
      request.log.warn(
        { error },
        'the use of a token on another account could not be recorded in its audit log; check that Postgres answers',
      ),
    );
  };

  scope.addHook('onRoute', (route) => {
    const access = route.config?.access;
    if (!access) throw new Error(`${route.url} has no config.access; add the rights that it needs`);
    const description = [route.schema?.description, describeAccess(access)].join(' ').trim();
    route.schema = {
      ...route.schema,
      description,
      security: [{ account_token: [] }],
      'x-sluice-role': access.role,
    };
  });

  scope.addHook('onRequest', async (request, reply) => {
    const reading = await readSession(request);
    if (reading.outcome === 'refused')
      return refusedCredentials.refuse(request, reply, reading.text, reading.problem);
    if (reading.outcome === 'incomplete') return sendProblem(request, reply, SECOND_FACTOR_MISSING);
    if (reading.outcome === 'open') {
      const { session } = reading;
      const caller = callerOfSession(session, effects.operatorAccountIds);
      const refusal =
        (await countCall(reply, sessionSubject(session, request))) ?? refuse(request, caller);
      if (refusal) {
        const { credentialId, serviceAccountId } = session;
        // A user asks for no other account on purpose: an address of another account is an old bookmark.
        if (credentialId !== null && serviceAccountId !== null)
          noteRefused(request, { ...caller, credentialId, serviceAccountId }, refusal, undefined);
        return sendProblem(request, reply, refusal);
      }
      request.accountCaller = caller;
      return undefined;
    }
    const header = request.headers.authorization ?? '';
    const token = await authenticate(header);
    if (!token) {
      return refusedCredentials.refuse(request, reply, BEARER.exec(header)?.[1], {
        code: 'unauthorized',
        message: 'unauthorized: the bearer token is missing or not in force',
      });
    }
    const caller = { ...token, session: null };
    const refusal = (await countCall(reply, token.credentialId)) ?? refuse(request, caller);
    if (refusal) {
      noteRefused(request, token, refusal, request.headers.authorization);
      return sendProblem(request, reply, refusal);
    }
    request.accountCaller = caller;
    noteUse(request, token);
    return undefined;
  });
}

/**
 * Asks each route's `access.refuse`, on `app` and all its scopes. Call it before `keepAnswers`: a kept answer is sent
 * only to a caller who may still make the call, and a narrower token shares the idempotency keys of the one it came
 * from.
 */
export function refuseWhatIsBeyond(app: ApiServer): void {
  app.addHook('preHandler', async (request, reply) => {
    const refusal = await request.routeOptions.config.access?.refuse?.(request);
    return refusal && sendProblem(request, reply, refusal);
  });
}

/** For the API's documentation. */
function describeAccess({ role, scope }: Access): string {
  if (scope !== undefined) return `Needs the scope \`${scope}\`.`;
  const enough = ROLES.filter((each) => includesRole(each, role)).map((each) => `\`${each}\``);
  return `Needs the role ${enough.join(' or ')}.`;
}

/** The caller, if the call has passed the guard. */
export function accountCallerOf({ accountCaller }: FastifyRequest): AccountCaller {
  if (!accountCaller)
    throw new Error('a route that needs an account stands outside the scope that guards');
  return accountCaller;
}

/** Caller and address of the call, for the record of the change that it makes (`recordChange`). */
export function originOf(request: FastifyRequest): ChangeOrigin & { actor: AccountActor } {
  const { serviceAccountId, credentialId, session } = accountCallerOf(request);
  return {
    actor:
      session?.userId != null
        ? { type: 'user', userId: session.userId }
        : { type: 'service_account', serviceAccountId },
    credentialId,
    sessionId: session?.sessionId ?? null,
    ...sourceOf(request),
    requestId: request.id,
    call: heldCallOf(request),
  };
}

/**
 * A user has the account by role alone, from any address, for as long as the session is open; a session that a token
 * opened reaches as far as the token.
 */
const callerOfSession = (
  session: ConsoleSession,
  operatorAccountIds: readonly number[],
): AccountCaller => ({
  accountId: session.accountId,
  role: session.role,
  isReadOnly: session.isReadOnly,
  scopes: isOfOperator(session, operatorAccountIds) ? ['fleet:read'] : session.scopes,
  ipAllowlist: session.ipAllowlist,
  // The door asks for it (`session-door.ts`).
  isFactorMissing: false,
  expiresAt: session.expiresAt,
  credentialId: session.credentialId,
  serviceAccountId: session.serviceAccountId,
  session,
});

/** A user; a token has its scopes. */
const isOfOperator = (
  { accountId, userId, role }: ConsoleSession,
  operatorAccountIds: readonly number[],
): boolean => userId !== null && role === 'account_admin' && operatorAccountIds.includes(accountId);

/**
 * Counts the calls of a token together with the calls of the access tokens made from it, and of the sessions that it
 * opened.
 */
export function createTokenRate({
  database,
  ratePerMinute,
  now,
}: Pick<AccountGuardEffects, 'database' | 'ratePerMinute' | 'now'>): CallRate {
  return createCallRate(
    {
      name: 'token',
      countMax: ratePerMinute,
      windowMs: MINUTE_MS,
      now,
      takeCalls: takeCallsIn(database),
    },
    `a token may make ${ratePerMinute} calls a minute; try again after the time in Retry-After`,
  );
}

/**
 * `Authorization` → the caller. Undefined if the token is not in force. Tokens are `sa_live_…`/`sa_sandbox_…` or exchanged
 * ones (`access-token.ts`), looked up by SHA-256 and remembered for a second: revoking takes effect within that. A user's
 * session (`session-door.ts`) opens the same routes by the user's role, without scopes; a token's session has the token's.
 */
export function createAuthenticate({
  database,
  secret,
  now,
  monotonicNow,
}: Pick<AccountGuardEffects, 'database' | 'secret' | 'now' | 'monotonicNow'>): (
  header: string,
) => Promise<AccountToken | undefined> {
  const tokens = new RecentAnswers<AccountToken>({
    ttlMs: TOKEN_TTL_MS,
    countMax: TOKEN_COUNT_MAX,
    monotonicNow,
  });

  return async (header) => {
    const text = BEARER.exec(header)?.[1];
    if (text === undefined) return undefined;
    if (looksLikeAccessToken(text)) {
      const claims = readAccessToken(secret, text, now());
      if (!claims) return undefined;
      const { accountId, credentialId } = claims;
      const token = await tokens.get(`${accountId}:${credentialId}`, () =>
        findAccountTokenById(database, accountId, credentialId),
      );
      if (!isInForce(token, now())) return undefined;
      // One without a tag was signed before a rolling restart, less than 15 minutes ago.
      const { secretTag } = claims;
      if (secretTag !== undefined && secretTag !== secretTagOf(token.secretHash)) return undefined;
      return {
        ...token,
        isReadOnly: token.isReadOnly || claims.isReadOnly,
        scopes: token.scopes.filter((each) => claims.scopes.includes(each)),
      };
    }
    const secretHash = hashSecret(text);
    const token = await tokens.get(secretHash.toString('base64'), () =>
      findAccountToken(database, secretHash),
    );
    return isInForce(token, now()) ? token : undefined;
  };
}

function isInForce(token: AccountToken | undefined, nowMs: number): token is AccountToken {
  return token !== undefined && (token.expiresAt === null || nowMs < token.expiresAt.getTime());
}

/** Reason to refuse the call; undefined if the caller may make it. */
function refuse(request: FastifyRequest, caller: AccountCaller): Problem | undefined {
  const { account_id: accountId } = request.params as { account_id?: string };
  if (accountId !== undefined && accountId !== String(caller.accountId))
    return { code: 'not_found', message: 'account not found' };
  const restriction = refuseUse(request, caller, 'token');
  if (restriction) return restriction;
  const access = request.routeOptions.config.access as Access;
  if (!includesRole(caller.role, access.role))
    return { code: 'forbidden', message: `this call needs the role ${access.role}` };
  if (access.scope !== undefined && !caller.scopes.includes(access.scope))
    return { code: 'forbidden', message: `this call needs a token with the scope ${access.scope}` };
  return undefined;
}
