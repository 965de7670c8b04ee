/**
 * `Idempotency-Key` on every POST and PUT (`account-conventions.md` §3.5). A call sent again with the same key gets the
 * first answer, and has no second effect.
 * A key is scoped by caller, method and path. Without credentials the body is part of the scope, so strangers share no
 * key: a caller with another's key but not its whole body (for example a mailed code) is treated as new. If a route
 * reads a query, that is a part of the body: another page of a search is another call.
 * Answers 2xx and 402 are kept for seven days. A refused (4xx) or failed (5xx) call without a change leaves the key
 * free. The same key with another body is 422; while the first call runs it is 409. An answer may hold a secret that is
 * shown once. So the key itself is not kept, and the answer is encrypted (AES-256-GCM) under a key made from it.
 * The answer is written after the commit, but the outcome is committed with the change
 * (`database/src/changes/transact-once.ts`). If the process dies between the two, or a step after the change fails, the
 * same call goes on from the outcome. If it dies before the commit, the call runs again once the lock is over, after a
 * minute.
 */
import type { Database } from '@sluice/database/connection/connection';
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import {
  claimIdempotencyKey,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
} from '@sluice/database/changes/idempotency-keys';
import type { HeldCall } from '@sluice/database/changes/transact-once';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from './error-handling.ts';
import { keyFailures } from './fields.ts';
import { invalidRequest, type Problem } from './problem.ts';
import type { ApiServer } from './api-server.ts';

export interface IdempotencyEffects {
  readonly database: Database;
  readonly secret: string;
  readonly now: () => number;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * False: an `Idempotency-Key` has no effect here, and no answer is kept. For routes that find out their callers
     * themselves (`/console/session`, `/console/second_factor`): to this file all of these are one caller, and one
     * would get another's secrets.
     */
    keepsAnswers?: boolean;
  }
  interface FastifyRequest {
    /** The key that this call holds; null if it has no key or does not run. */
    heldCall: ClaimedCall | null;
  }
}

interface ClaimedCall extends HeldCall {
  /** The same call has made its change before, and was not answered. */
  readonly isDone: boolean;
}

/** For the use case that makes the change of this call. */
export const heldCallOf = ({ heldCall }: FastifyRequest): HeldCall | undefined =>
  heldCall ?? undefined;

/** Used by the clearing of older ones. */
export const IDEMPOTENCY_KEPT_MS = 7 * 86_400_000;
/** Twice the longest that a request may take. */
const LOCK_MS = 60_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Headers that a kept answer is sent with again. */
const KEPT_HEADERS = ['content-type', 'retry-after', 'location'] as const;
/** Of an answer that another call was given first. */
const REPLAYED = { 'idempotent-replayed': 'true' } as const;

/** For every route of `app`, also those declared later. */
export function keepAnswers(app: ApiServer, { database, secret, now }: IdempotencyEffects): void {
  app.decorateRequest('heldCall', null);

  app.addHook('onRoute', (route) => {
    if (route.schema?.hide === true || (route.method !== 'POST' && route.method !== 'PUT')) return;
    const own = route.schema?.response as object | undefined;
    route.schema = { ...route.schema, response: { ...keyFailures, ...own } };
  });

  app.addHook('preHandler', async (request, reply) => {
    const given = request.headers['idempotency-key'];
    if (given === undefined || (request.method !== 'POST' && request.method !== 'PUT'))
      return undefined;
    if (request.routeOptions.config.keepsAnswers === false) return undefined;
    if (typeof given !== 'string' || !KEY.test(given))
      return sendProblem(request, reply, invalidKey());
    const fingerprint = fingerprintOf(request);
    const call = holdKey(secret, request, given, fingerprint);
    const nowMs = now();
    const claim = await claimIdempotencyKey(database, call, fingerprint, {
      nowMs,
      lockedUntilMs: nowMs + LOCK_MS,
      forgottenBeforeMs: nowMs - IDEMPOTENCY_KEPT_MS,
    });
    switch (claim.outcome) {
      case 'claimed':
        request.heldCall = { ...call, isDone: claim.isDone };
        return undefined;
      case 'answered':
        return sendAgain(reply, openAnswer(call, claim.answer));
      case 'running':
        return sendProblem(request, reply, {
          code: 'idempotency_key_in_use',
          message: 'a call with this Idempotency-Key is in progress; try again',
          retryAfterSeconds: 1,
        });
      case 'mismatch':
        return sendProblem(request, reply, {
          code: 'idempotency_key_reused',
          message: 'this Idempotency-Key was used with another body or query; use a new key',
        });
    }
  });

  app.addHook('onSend', async (request, reply, payload) => {
    const call = request.heldCall;
    if (!call) return payload;
    request.heldCall = null;
    const isKept = reply.statusCode < 300 || reply.statusCode === 402;
    try {
      if (!isKept) {
        await releaseIdempotencyKey(database, call);
        return payload;
      }
      const own = call.encrypt(Buffer.from(JSON.stringify(toKept(reply, payload))));
      const kept = await keepIdempotentAnswer(database, call, own);
      if (kept.equals(own)) return payload;
      // Another call made this answer at the same time: both get it, and this one is marked as a replay.
      const { status, headers, body } = openAnswer(call, kept);
      const contentLength = Buffer.byteLength(body);
      void reply.code(status).headers({ ...headers, ...REPLAYED, 'content-length': contentLength });
      return body;
    } catch (error) {
      // The call is done; a failure to keep its answer must not make it look undone.
      request.log.error(
        { error },
        'the answer of an idempotent call could not be stored; the change itself is stored',
      );
    }
    return payload;
  });
}

/** For every route of `scope` that is declared from now on. */
export function keepNoAnswers(scope: ApiServer): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, keepsAnswers: false };
  });
}

interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function toKept(reply: FastifyReply, payload: unknown): KeptAnswer {
  const headers = KEPT_HEADERS.flatMap((name) => {
    const value = reply.getHeader(name);
    return value === undefined ? [] : [[name, String(value)] as const];
  });
  const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : '';
  return { status: reply.statusCode, headers: Object.fromEntries(headers), body };
}

function sendAgain(reply: FastifyReply, { status, headers, body }: KeptAnswer): FastifyReply {
  return reply
    .code(status)
    .headers({ ...headers, ...REPLAYED })
    .serializer(String)
    .send(body);
}

function holdKey(
  secret: string,
  request: FastifyRequest,
  given: string,
  fingerprint: Buffer,
): HeldCall {
  const known = principalOf(request);
  const principal = known ?? NOBODY;
  const [path] = request.url.split('?');
  const body = known === undefined ? [fingerprint.toString('base64')] : [];
  const scope = [principal, request.method, path, given, ...body];
  const scoped = (purpose: string) =>
    createHmac('sha256', secret)
      .update(JSON.stringify([purpose, ...scope]))
      .digest();
  const encryptionKey = scoped('idempotency answer');
  return {
    principal,
    keyHash: scoped('idempotency key'),
    encrypt: (content) => encrypt(encryptionKey, content),
    decrypt: (encrypted) => decrypt(encryptionKey, encrypted),
  };
}

const openAnswer = (call: HeldCall, encrypted: Buffer): KeptAnswer =>
  JSON.parse(call.decrypt(encrypted).toString('utf8')) as KeptAnswer;

/**
 * Of the body, and of a query that was sent, as their schemas have read them. A body or query that a route does not
 * take has no effect and no bound.
 */
function fingerprintOf({ body, query, url, routeOptions: { schema } }: FastifyRequest): Buffer {
  const read = schema?.body === undefined ? null : (body ?? null);
  const hash = createHash('sha256').update(Buffer.isBuffer(body) ? body : JSON.stringify(read));
  // If no query was sent the defaults stay out, so that an older version's record of the call is found.
  if (schema?.querystring !== undefined && url.includes('?')) hash.update(JSON.stringify(query));
  return hash.digest();
}

/** Credentials and users are numbered across all tenants. Undefined: it needs no credentials. */
function principalOf({ accountCaller, caller }: FastifyRequest): string | undefined {
  if (caller?.portal) return `portal ${caller.portal.portalLinkId} of ${caller.environmentId}`;
  const known = accountCaller ?? caller;
  if (!known?.session) return known ? `credential ${known.credentialId}` : undefined;
  // A key of an app names its workspace; a user may have several.
  const place = caller ? ` in workspace ${caller.environmentId}` : '';
  const { userId, credentialId } = known.session;
  return `${userId === null ? `credential ${credentialId}` : `user ${userId}`}${place}`;
}

const NOBODY = 'nobody known';

const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;

function encrypt(key: Buffer, content: Buffer): Buffer {
  const nonce = randomBytes(NONCE_SIZE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const encrypted = [cipher.update(content), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]);
}

/** @throws Error if it was not encrypted with this key. */
function decrypt(key: Buffer, encrypted: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, NONCE_SIZE_BYTES));
  const bodyAt = NONCE_SIZE_BYTES + TAG_SIZE_BYTES;
  decipher.setAuthTag(encrypted.subarray(NONCE_SIZE_BYTES, bodyAt));
  return Buffer.concat([decipher.update(encrypted.subarray(bodyAt)), decipher.final()]);
}

const invalidKey = (): Problem =>
  invalidRequest([
    {
      field: 'Idempotency-Key',
      reason: 'invalid',
      message: 'Idempotency-Key must be 1 to 255 visible ASCII characters',
      source: { parameter: 'Idempotency-Key' },
    },
  ]);
