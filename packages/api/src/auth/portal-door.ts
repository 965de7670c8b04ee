/**
 * `X-Sluice-Portal` and its cookie → the open session of the portal.
 *
 * It is the third door beside key and console, into the webhooks of one link. The guard of the workspace routes
 * (`authenticate.ts`) asks it first. A route is open to the portal only if its `config.isInPortal` is true, a write
 * also only if the link allows its `config.capability`. The statement that finds the session also checks the webhook of
 * the path, beside the tenant, so each call is judged by the link's present rights. No other route reads the cookie.
 *
 * The page names its link in the header. A page of others cannot send that, and a page that is still open when the
 * browser has opened another link is refused instead of showing the other customer's webhooks.
 */
import { findPortalSession, type PortalSession } from '@sluice/database/webhooks/portal-sessions';
import type { PortalKey } from '@sluice/database/webhooks/portal-links';
import type { Database } from '@sluice/database/connection/connection';
import type { Capability } from '@sluice/domain/accounts/capabilities';
import { PORTAL_CAPABILITIES, PORTAL_SECONDS_MAX } from '@sluice/domain/accounts/portal';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest } from 'fastify';
import { isRead } from '../http/call-kind.ts';
import { notFound, type Problem } from '../http/problem.ts';
import { readCookie, refuseVisit, TWO_CALLERS, type Visit } from './session-cookie.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True: a session of the portal may make the call, about its own webhooks. */
    isInPortal?: boolean;
  }
}

export type PortalReading =
  | { readonly outcome: 'none' }
  | { readonly outcome: 'open'; readonly session: PortalSession; readonly refusal?: Problem }
  /** @property text - the cookie, if it is not in force. */
  | { readonly outcome: 'refused'; readonly problem: Problem; readonly text?: string };

const HEADER = /^([1-9]\d{0,9})\/([\w-]{1,64})$/;
const WEBHOOK_ID = /^[1-9]\d{0,9}$/;

/** The link of a page, as its address and its header name it. */
export function readPortalKey(text: string): PortalKey | undefined {
  const [, environmentId = '', portalLinkId = ''] = HEADER.exec(text) ?? [];
  if (portalLinkId === '' || Number(environmentId) > INTEGER_MAX) return undefined;
  return { environmentId: Number(environmentId), portalLinkId };
}

function portalCookieName({ protocol, host }: Pick<Visit, 'protocol' | 'host'>): string {
  if (protocol === 'https') return '__Host-portal';
  return `portal-${/:(\d+)$/.exec(host)?.[1] ?? '80'}`;
}

/**
 * By HTTPS it is sent in a frame of another site too, and kept apart for each site that has the frame (`Partitioned`):
 * browsers block other cookies there.
 *
 * @param text - absent: the cookie is taken away.
 */
export function portalCookieHeader(visit: Visit, text?: string): string {
  return [
    `${portalCookieName(visit)}=${text ?? ''}`,
    'Path=/',
    `Max-Age=${text === undefined ? 0 : PORTAL_SECONDS_MAX}`,
    'HttpOnly',
    ...(visit.protocol === 'https'
      ? ['SameSite=None', 'Secure', 'Partitioned']
      : ['SameSite=Strict']),
  ].join('; ');
}

/** The session's rights, in the words of the console. */
export const capabilitiesOfPortal = ({
  capabilities,
}: Pick<PortalSession, 'capabilities'>): Capability[] =>
  capabilities.flatMap((each) => [...PORTAL_CAPABILITIES[each]]);

export const createPortalDoor =
  ({ database }: { readonly database: Database }) =>
  async (request: FastifyRequest): Promise<PortalReading> => {
    const given = request.headers['x-sluice-portal'];
    if (given === undefined) return { outcome: 'none' };
    if (request.headers.authorization !== undefined)
      return { outcome: 'refused', problem: TWO_CALLERS };
    const foreign = refuseVisit(request);
    if (foreign) return { outcome: 'refused', problem: foreign };
    const text = readCookie(request, portalCookieName(request));
    const key = typeof given === 'string' ? readPortalKey(given) : undefined;
    if (text === undefined || !key) return { outcome: 'refused', problem: LINK_OVER };
    const webhook = webhookOf(request);
    const webhookId = webhook === 'none_such' ? null : webhook;
    const session = await findPortalSession(database, key, hashSecret(text), webhookId);
    if (!session) return { outcome: 'refused', problem: LINK_OVER, text };
    const refusal = refuse(request, session, webhook);
    return { outcome: 'open', session, ...(refusal && { refusal }) };
  };

/** Of the path, whose text has not been checked yet; null if it names no webhook. */
function webhookOf({ params }: FastifyRequest): number | null | 'none_such' {
  const given = (params as { readonly webhook_id?: string }).webhook_id;
  if (given === undefined) return null;
  return WEBHOOK_ID.test(given) && Number(given) <= INTEGER_MAX ? Number(given) : 'none_such';
}

function refuse(
  request: FastifyRequest,
  session: PortalSession,
  webhook: ReturnType<typeof webhookOf>,
): Problem | undefined {
  const { isInPortal, capability } = request.routeOptions.config;
  if (isInPortal !== true) return NOT_IN_PORTAL;
  if (webhook === 'none_such' || !session.isInScope) return notFound('the reporting webhook was');
  const needed = isRead(request) ? 'workspace.read' : (capability ?? 'workspace.manage');
  if (capabilitiesOfPortal(session).includes(needed)) return undefined;
  return {
    code: 'forbidden',
    message:
      'the link to the portal does not allow this call; ask the sender of the link for its capability',
  };
}

/**
 * One answer for a link that is over, of another workspace, or opened elsewhere: it does not show whether there is such
 * a link.
 */
export const LINK_OVER: Problem = {
  code: 'unauthorized',
  message: 'the link has ended; open the portal again from the page of its sender',
};

const NOT_IN_PORTAL: Problem = {
  code: 'forbidden',
  message:
    'the portal opens only the webhooks of its link; ask the sender of the link for another one',
};
