/**
 * `/portal/session`: the code of a link → a session of the portal, with its rights, and its end. The portal's own
 * interface, which the reference leaves out.
 *
 * A code that is wrong, used or too old, and one of no link, is one answer.
 */
import { randomBytes } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import { leavePortal, openPortalSession } from '@sluice/database/webhooks/portal-sessions';
import { EVENT_TYPE_COUNT_MAX } from '@sluice/database/webhooks/event-type-changes';
import { listEventTypes } from '@sluice/database/webhooks/event-types';
import { textColorOn } from '@sluice/domain/accounts/portal';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { z } from 'zod';
import { portalOf } from '../auth/authenticate.ts';
import {
  capabilitiesOfPortal,
  portalCookieHeader,
  readPortalKey,
  LINK_OVER,
} from '../auth/portal-door.ts';
import type { RefusedCredentials } from '../auth/refused-credentials.ts';
import { refuseVisit } from '../auth/session-cookie.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import type { Problem } from '../http/problem.ts';
import { callOf, HIDDEN } from './console-call.ts';

export interface PortalSessionEffects {
  readonly database: Database;
  readonly now: () => number;
  readonly refusedCredentials: RefusedCredentials;
}

const SECRET_SIZE_BYTES = 32;

const opening = z.strictObject({
  /** As in the address of the page. */
  link: z.string().max(100),
  code: z.string().regex(/^[\w-]{43}$/),
});

/** On a scope without a guard. */
export function registerPortalOpening(
  scope: ApiServer,
  { database, now, refusedCredentials }: PortalSessionEffects,
): void {
  scope.post(
    '/portal/session',
    {
      schema: { ...HIDDEN, body: opening },
      // Also before there is a session: another page must not open one in a browser.
      onRequest: async (request, reply) => {
        const foreign = refuseVisit(request);
        return foreign && sendProblem(request, reply, foreign);
      },
    },
    async (request, reply) => {
      const { link, code } = request.body;
      const key = readPortalKey(link);
      const cookie = randomBytes(SECRET_SIZE_BYTES).toString('base64url');
      const hashes = { codeHash: hashSecret(code), sessionHash: hashSecret(cookie) };
      const isOpened =
        key && (await openPortalSession(database, key, hashes, callOf(request), now()));
      if (isOpened !== true) return refusedCredentials.refuse(request, reply, code, CODE_USED);
      return reply.header('set-cookie', portalCookieHeader(request, cookie)).code(204).send();
    },
  );
}

/** On a scope that `authenticateCallers` was called on. */
export function registerPortalSession(
  scope: ApiServer,
  { database }: Pick<PortalSessionEffects, 'database'>,
): void {
  const config = { isInPortal: true };
  scope.get('/portal/session', { config, schema: HIDDEN }, async (request, reply) => {
    const session = portalOf(request);
    if (!session) return sendProblem(request, reply, LINK_OVER);
    const { accent } = session.theme;
    const isOfApplication = session.applicationId !== null;
    const named = isOfApplication
      ? await listEventTypes(database, session.environmentId, EVENT_TYPE_COUNT_MAX)
      : [];
    return reply.send({
      for: session.label,
      capabilities: capabilitiesOfPortal(session),
      event_types: isOfApplication ? named.map(({ name }) => name) : session.eventTypes,
      /** True: a webhook chooses among names of messages (`event_names`) and not among types. */
      is_of_application: isOfApplication,
      return_url: session.returnUrl,
      expires_at: session.endsAt.toISOString(),
      theme: { ...session.theme, on_accent: accent && textColorOn(accent) },
      /** The page sends its height to them. */
      origins: session.origins,
    });
  });

  scope.delete(
    '/portal/session',
    { config: { ...config, capability: 'workspace.read' }, schema: HIDDEN },
    async (request, reply) => {
      const session = portalOf(request);
      if (!session) return sendProblem(request, reply, LINK_OVER);
      await leavePortal(database, session);
      return reply.header('set-cookie', portalCookieHeader(request)).code(204).send();
    },
  );
}

const CODE_USED: Problem = {
  code: 'unauthorized',
  message: 'the link was opened before, or is older than a minute; open the portal again',
};
