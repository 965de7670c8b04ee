/**
 * Bearer key → workspace, within the rate of the key.
 *
 * Keys are compared by SHA-256 in an index of Postgres, so no secret is stored and no comparison leaks by its time. A
 * key is remembered for a second: revoking one takes effect within that.
 *
 * A user's session in the console (`session-door.ts`) opens the workspace that `X-Sluice-Workspace` names, one of the
 * user's. Another page cannot send that header. A read needs no role, a write the route's `config.capability`, or else
 * `workspace.manage`. A session of the portal (`portal-door.ts`) opens the webhooks of its link.
 */
import type { ConsoleSession } from '@sluice/database/users/console-sessions';
import type { Database } from '@sluice/database/connection/connection';
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import { type AppKey, findAppKey } from '@sluice/database/accounts/credentials';
import type { PortalSession } from '@sluice/database/webhooks/portal-sessions';
import { WHOLE_WORKSPACE, type WebhookScope } from '@sluice/database/webhooks/webhook-scopes';
import { includesRole, type Role } from '@sluice/domain/accounts/account';
import { CAPABILITIES, type Capability } from '@sluice/domain/accounts/capabilities';
import { nameInPortal } from '@sluice/domain/accounts/portal';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { takeCallsIn } from './call-limit.ts';
import { createCallRate } from './call-rate.ts';
import { isRead } from '../http/call-kind.ts';
import { sendProblem } from '../http/error-handling.ts';
import { forbidden, tooMany } from '../http/fields.ts';
import { heldCallOf } from '../http/idempotency.ts';
import { invalidRequest, type Problem } from '../http/problem.ts';
import { createPortalDoor } from './portal-door.ts';
import { RecentAnswers } from './recent-answers.ts';
import { createUseRecorder } from './record-use.ts';
import { refuseUse } from './restricted-use.ts';
import type { RefusedCredentials } from './refused-credentials.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sourceOf } from '../serving/call-source.ts';
import {
  createSessionDoor,
  findOpenSession,
  SECOND_FACTOR_MISSING,
  sessionSubject,
} from './session-door.ts';

const KEY_TTL_MS = 1000;
const KEY_COUNT_MAX = 10_000;

/** The scheme in any case (RFC 9110 §11.1), then one token. */
const BEARER = /^bearer +([\w.~+/=-]{1,512}) *$/i;

/** Whose call it is. Every statement made for it names this tenant. */
export interface Caller {
  readonly environmentId: number;
  /** Of the key, or of the token that opened the session; null in a session of a user. */
  readonly credentialId: number | null;
  /** Name of the key or the token, or email of the user, for the audit log. */
  readonly name: string;
  /** Null for a key, and in the portal. */
  readonly session: ConsoleSession | null;
  /** Null but in the portal. */
  readonly portal: PortalSession | null;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Capability that a user needs for this write of a workspace. Absent: `workspace.manage`. `workspace.read` marks a
     * read.
     */
    capability?: Capability;
  }
  interface FastifyRequest {
    /** Set by {@link authenticateCallers}; null on routes that need no key. */
    caller: Caller | null;
  }
}

export interface AuthenticateEffects {
  readonly database: Database;
  /** Calls that one key may make a second, at all processes together. 0: no limit. */
  readonly keyRatePerSecond: number;
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly refusedCredentials: RefusedCredentials;
  /** Calls that one session may make a minute, at all processes together. 0: no limit. */
  readonly ratePerMinute: number;
  /** Names for which the demo opens however a call came (`DEMO_HOSTS`). */
  readonly demoHosts: readonly string[];
}

/**
 * Guards every route that is declared on `scope` from now on with an app key or a session: 401 without one in force,
 * 403 if the user or the key may not, 429 if it calls too often.
 */
export function authenticateCallers(scope: ApiServer, effects: AuthenticateEffects): void {
  scope.addHook('onRoute', (route) => {
    const isReadOnly = [route.method].flat().includes('GET');
    route.schema = {
      ...route.schema,
      // Of a user in a session; a key has no role.
      'x-sluice-role': isReadOnly ? CAPABILITIES['workspace.read'] : roleForWrite(route.config),
      response: { ...forbidden, ...(route.schema?.response as object | undefined), ...tooMany },
    };
  });
  scope.addHook('onRequest', authenticateCaller(effects));
}

function authenticateCaller({
  database,
  keyRatePerSecond,
  ratePerMinute,
  now,
  monotonicNow,
  refusedCredentials,
  demoHosts,
}: AuthenticateEffects): onRequestAsyncHookHandler {
  const readPortal = createPortalDoor({ database });
  const readSession = createSessionDoor({ database, demoHosts, now, monotonicNow });
  const keys = new RecentAnswers<AppKey>({
    ttlMs: KEY_TTL_MS,
    countMax: KEY_COUNT_MAX,
    monotonicNow,
  });
  const noteUse = createUseRecorder({ database, now, monotonicNow });
  const countCall = createCallRate(
    {
      name: 'key',
      countMax: keyRatePerSecond,
      windowMs: 1000,
      now,
      takeCalls: takeCallsIn(database),
    },
    `a key may make ${keyRatePerSecond} calls a second; try again after the time in Retry-After`,
  );
  const countSessionCall = createCallRate(
    {
      name: 'token',
      countMax: ratePerMinute,
      windowMs: 60_000,
      now,
      takeCalls: takeCallsIn(database),
    },
    `a session may make ${ratePerMinute} calls a minute; try again after the time in Retry-After`,
  );
  return async (request, reply) => {
    const portal = await readPortal(request);
    if (portal.outcome === 'refused')
      return refusedCredentials.refuse(request, reply, portal.text, portal.problem);
    if (portal.outcome === 'open') {
      const { session } = portal;
      const { environmentId, label: name } = session;
      const refusal =
        (await countSessionCall(reply, `portal ${session.portalLinkId}`)) ?? portal.refusal;
      if (refusal) return sendProblem(request, reply, refusal);
      request.caller = { environmentId, credentialId: null, name, session: null, portal: session };
      return undefined;
    }
    const reading = await readSession(request);
    if (reading.outcome === 'refused')
      return refusedCredentials.refuse(request, reply, reading.text, reading.problem);
    if (reading.outcome === 'incomplete') return sendProblem(request, reply, SECOND_FACTOR_MISSING);
    if (reading.outcome === 'open') {
      const { session } = reading;
      const environmentId = workspaceWanted(request, session);
      const refusal =
        (await countSessionCall(reply, sessionSubject(session, request))) ??
        (typeof environmentId === 'number' ? refuseRole(request, session) : environmentId);
      if (refusal || typeof environmentId !== 'number')
        return sendProblem(request, reply, refusal ?? NOT_IN_FORCE);
      const { credentialId, name } = session;
      request.caller = { environmentId, credentialId, name, session, portal: null };
      return undefined;
    }
    const token = bearerToken(request);
    if (token !== undefined) {
      const secretHash = hashSecret(token);
      const key = await keys.get(secretHash.toString('base64'), () =>
        findAppKey(database, secretHash),
      );
      if (key) {
        const refusal =
          (await countCall(reply, key.credentialId)) ?? refuseUse(request, key, 'key');
        if (refusal?.code === 'ip_not_allowed')
          return refusedCredentials.refuse(request, reply, token, refusal);
        if (refusal) return sendProblem(request, reply, refusal);
        request.caller = {
          environmentId: key.environmentId,
          credentialId: key.credentialId,
          name: key.name,
          session: null,
          portal: null,
        };
        noteUse(request, key);
        return undefined;
      }
    }
    return refusedCredentials.refuse(request, reply, token, NOT_IN_FORCE);
  };
}

/** Without a key, or with one that is not in force. */
export const NOT_IN_FORCE: Problem = {
  code: 'unauthorized',
  message: 'unauthorized: the bearer key is missing or not in force',
};

/** The workspace of a session's call, or the problem if it names no valid one. */
function workspaceWanted(
  { headers }: FastifyRequest,
  { environmentIds }: ConsoleSession,
): number | Problem {
  const given = headers['x-sluice-workspace'];
  if (typeof given !== 'string')
    return invalidRequest([
      {
        field: 'X-Sluice-Workspace',
        reason: 'required',
        message: 'X-Sluice-Workspace is required in a session: the id of one of your workspaces',
        source: { parameter: 'X-Sluice-Workspace' },
      },
    ]);
  return environmentIds.find((each) => String(each) === given) ?? NOT_OWNED;
}

/** The answer does not show whether there is such a workspace. */
const NOT_OWNED: Problem = {
  code: 'environment_not_owned',
  message: 'X-Sluice-Workspace must be the id of one of your workspaces',
};

const roleForWrite = ({ capability }: { readonly capability?: Capability } = {}): Role =>
  CAPABILITIES[capability ?? 'workspace.manage'];

function refuseRole(request: FastifyRequest, session: ConsoleSession) {
  if (isRead(request)) return undefined;
  const { role, isReadOnly } = session;
  if (isReadOnly)
    return {
      code: 'read_only',
      message: 'the token of the session may only read; sign in with one that may write',
    } as const;
  const needed = roleForWrite(request.routeOptions.config);
  if (includesRole(role, needed)) return undefined;
  return { code: 'forbidden', message: `this call needs the role ${needed}` } as const;
}

/**
 * Asks anew, for a call that goes on for long: true while its key or session still opens its workspace for such a call,
 * with the workspaces, the role, the reads and the addresses that it has now.
 */
export async function isCallerInForce(
  request: FastifyRequest,
  database: Database,
): Promise<boolean> {
  const { session: opened, environmentId, portal } = callerOf(request);
  // Long calls are closed to the portal.
  if (portal) return false;
  if (opened) {
    const session = await findOpenSession(request, database);
    return (
      session?.environmentIds.includes(environmentId) === true && !refuseRole(request, session)
    );
  }
  const key = await findAppKey(database, hashSecret(bearerToken(request) ?? ''));
  return key !== undefined && !refuseUse(request, key, 'key');
}

/** The key as it was sent; undefined if there is no key. */
function bearerToken({ headers }: FastifyRequest): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** The tenant of a call that has passed {@link authenticateCallers}. */
export function environmentOf(request: FastifyRequest): number {
  return callerOf(request).environmentId;
}

/** Name of the caller: the key's name, the email of the user, or `acme in the portal`. */
export function callerNameOf(request: FastifyRequest): string {
  const { name, portal } = callerOf(request);
  return portal ? nameInPortal(name) : name;
}

/** The caller in a sentence: `with the key "Ops"`, `with the token "CI"`, `by ada@example.com`, `by acme in the portal`. */
export function agentOf(request: FastifyRequest): string {
  const { name, session, portal } = callerOf(request);
  if (portal) return `by ${nameInPortal(name)}`;
  if (!session) return `with the key "${name}"`;
  return session.userId === null ? `with the token "${name}"` : `by ${name}`;
}

/** Actor of a change by this call, for the audit log. */
export function changeOriginOf(request: FastifyRequest): ChangeOrigin {
  const { credentialId, session } = callerOf(request);
  return {
    actor: actorOf(callerOf(request)),
    credentialId,
    sessionId: session?.sessionId ?? null,
    ...sourceOf(request),
    requestId: request.id,
    call: heldCallOf(request),
  };
}

function actorOf({ session, portal }: Caller): ChangeOrigin['actor'] {
  if (portal) return { type: 'portal', linkId: portal.portalLinkId, label: portal.label };
  if (session?.userId != null) return { type: 'user', userId: session.userId };
  return { type: 'service_account', serviceAccountId: session?.serviceAccountId ?? null };
}

/** The webhooks that the caller reaches, for statements that are about no single one. */
export function webhookScopeOf(request: FastifyRequest): WebhookScope {
  const { portal } = callerOf(request);
  if (!portal) return WHOLE_WORKSPACE;
  const { portalLinkId, applicationId } = portal;
  return applicationId === null
    ? { of: 'portal_link', portalLinkId }
    : { of: 'application', applicationId, portalLinkId };
}

/** The rights of the portal link that the call was made by; null outside the portal. */
export const portalOf = (request: FastifyRequest): PortalSession | null => callerOf(request).portal;

function callerOf({ caller }: FastifyRequest): Caller {
  if (!caller)
    throw new Error('a route that needs a caller stands outside the scope that authenticates');
  return caller;
}
