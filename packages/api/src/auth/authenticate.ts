/**
 * Bearer key → the workspace it opens, as often as a key may call.
 *
 * Keys are compared by SHA-256 in an index of Postgres, so no secret is stored and no comparison
 * leaks by its time. A key is remembered for a second: revoking one takes effect within that.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import { type AppKey, findAppKey } from '@sluice/database/accounts/credentials';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { takeCallsIn } from './call-limit.ts';
import { createCallRate } from './call-rate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { tooMany } from '../http/fields.ts';
import { heldCallOf } from '../http/idempotency.ts';
import type { Problem } from '../http/problem.ts';
import { RecentAnswers } from './recent-answers.ts';
import type { RefusedCredentials } from './refused-credentials.ts';
import type { ApiServer } from '../http/api-server.ts';

const KEY_TTL_MS = 1000;
const KEY_COUNT_MAX = 10_000;

/** The scheme in any case (RFC 9110 §11.1), then one token. */
const BEARER = /^bearer +([\w.~+/=-]{1,512}) *$/i;

/** Whose call it is. Every statement made for it names this tenant. */
export interface Caller {
  readonly environmentId: number;
  readonly credentialId: number;
  /** What its owner calls the key, for the record of what was done with it. */
  readonly keyName: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by {@link authenticateCallers}; null on routes that need no key. */
    caller: Caller | null;
  }
}

export interface AuthenticateEffects {
  readonly database: Database;
  /** Calls that one key may make a second, at all processes together; 0: as many as it likes. */
  readonly keyRatePerSecond: number;
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly refusedCredentials: RefusedCredentials;
}

/**
 * Guards every route that is declared on `scope` from now on with an app key: 401 without one in force, 429
 * where it calls too often.
 */
export function authenticateCallers(scope: ApiServer, effects: AuthenticateEffects): void {
  scope.addHook('onRoute', (route) => {
    route.schema = {
      ...route.schema,
      response: { ...(route.schema?.response as object | undefined), ...tooMany },
    };
  });
  scope.addHook('onRequest', authenticateCaller(effects));
}

function authenticateCaller({
  database,
  keyRatePerSecond,
  now,
  monotonicNow,
  refusedCredentials,
}: AuthenticateEffects): onRequestAsyncHookHandler {
  const keys = new RecentAnswers<AppKey>({
    ttlMs: KEY_TTL_MS,
    countMax: KEY_COUNT_MAX,
    monotonicNow,
  });
  const countCall = createCallRate(
    {
      name: 'key',
      countMax: keyRatePerSecond,
      windowMs: 1000,
      now,
      takeCalls: takeCallsIn(database),
    },
    `a key may make ${keyRatePerSecond} calls a second`,
  );
  return async (request, reply) => {
    const token = bearerToken(request);
    if (token !== undefined) {
      const secretHash = hashSecret(token);
      const key = await keys.get(secretHash.toString('base64'), () =>
        findAppKey(database, secretHash),
      );
      if (key) {
        const refusal = await countCall(reply, key.credentialId);
        if (refusal) return sendProblem(request, reply, refusal);
        request.caller = {
          environmentId: key.environmentId,
          credentialId: key.credentialId,
          keyName: key.name,
        };
        return undefined;
      }
    }
    return refusedCredentials.refuse(request, reply, token, NOT_IN_FORCE);
  };
}

/** Without a key, or with one that opens nothing now. */
export const NOT_IN_FORCE: Problem = {
  code: 'unauthorized',
  message: 'unauthorized: the bearer key is missing or not in force',
};

/** Asks anew, for a call that goes on for long: true while its key still opens its workspace. */
export async function isKeyInForce(request: FastifyRequest, database: Database): Promise<boolean> {
  return (await findAppKey(database, hashSecret(bearerToken(request) ?? ''))) !== undefined;
}

/** The key as it was sent; undefined where there is none. */
function bearerToken({ headers }: FastifyRequest): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** The tenant of a call that has passed {@link authenticateCallers}. */
export function environmentOf(request: FastifyRequest): number {
  return callerOf(request).environmentId;
}

/** The caller, as far as a key tells who it is. */
export function keyNameOf(request: FastifyRequest): string {
  return callerOf(request).keyName;
}

/** Who changes something by this call, for the audit log. */
export function changeOriginOf(request: FastifyRequest): ChangeOrigin {
  return {
    actor: { type: 'service_account', serviceAccountId: null },
    credentialId: callerOf(request).credentialId,
    ipAddr: request.ip,
    userAgent: request.headers['user-agent'] ?? null,
    requestId: request.id,
    call: heldCallOf(request),
  };
}

function callerOf({ caller }: FastifyRequest): Caller {
  if (!caller)
    throw new Error('a route that needs a caller stands outside the scope that authenticates');
  return caller;
}
