/**
 * `/v1/portal_links`: links that open a set of webhooks to an engineer of a customer. The server of our user makes one
 * when its own page is opened, and sends the browser there; the code is in the fragment, which browsers never send.
 * Rights of a link: `auth/portal-door.ts`. The page: `packages/console/src/portal.tsx`.
 */
import { randomBytes } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import {
  endPortalLink,
  findWorkspaceOrigins,
  listPortalLinks,
  makePortalLink,
  type PortalLink,
} from '@sluice/database/webhooks/portal-links';
import { PORTAL_CODE_SECONDS, PORTAL_LINK_COUNT_MAX } from '@sluice/domain/accounts/portal';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  atLimit,
  badBody,
  badRequest,
  commonFailures,
  instant,
  missing,
  text,
} from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { invalidRequest, limitReached, notFound } from '../http/problem.ts';
import { capability, newLink } from './portal-link-fields.ts';

export interface PortalLinkEffects {
  readonly database: Database;
  readonly now: () => number;
  readonly newId: () => string;
  /** Browser's address of the console and the portal. Absent: the address of the call. */
  readonly consoleUrl?: string;
}

const CODE_SIZE_BYTES = 32;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

const tags = ['portal'];

const link = z
  .object({
    id: z.string(),
    for: z.string(),
    webhook_ids: z.array(z.int()),
    application: z.string().optional(),
    capabilities: z.array(capability),
    created_at: instant,
    expires_at: instant,
    opened_at: instant.nullable().meta({ description: 'Null: not opened yet.' }),
  })
  .meta({ id: 'PortalLink', description: 'A link that was made, without its code.' });

const position = z.tuple([z.string().regex(/^[\w-]{1,64}$/)]).transform(([id]) => id);

export function registerPortalLinks(
  app: ApiServer,
  { database, now, newId, consoleUrl }: PortalLinkEffects,
): void {
  app.post(
    '/v1/portal_links',
    {
      schema: {
        tags,
        summary: 'Make a link to the portal',
        description: `Opens the page of the webhooks once, within ${PORTAL_CODE_SECONDS} seconds; the session goes on until \`expires_at\`. Call it from your server and send the browser to \`url\`. At most ${PORTAL_LINK_COUNT_MAX} links a workspace that are not over.`,
        body: newLink,
        response: {
          200: z.object({ id: z.string(), url: z.string(), expires_at: instant }),
          ...badRequest,
          ...atLimit,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const environmentId = environmentOf(request);
      const code = randomBytes(CODE_SIZE_BYTES).toString('base64url');
      const made = await makePortalLink(
        database,
        environmentId,
        {
          portalLinkId: newId(),
          label: body.for,
          webhookIds: body.webhook_ids,
          capabilities: body.capabilities,
          eventTypes: body.event_types,
          attributeFilters: body.attribute_filters?.length ? body.attribute_filters : null,
          returnUrl: body.return_url,
          applicationId: body.application,
          theme: body.theme ?? { color_scheme: 'auto' },
          code,
          codeHash: hashSecret(code),
          seconds: body.expires_in,
        },
        changeOriginOf(request),
        now(),
      );
      switch (made.outcome) {
        case 'no_workspace':
          return sendProblem(request, reply, notFound('the workspace of this key was'));
        case 'no_application':
          return sendProblem(request, reply, NO_APPLICATION);
        case 'no_webhook':
          return sendProblem(request, reply, noSuchWebhook(body.webhook_ids, made.webhookId));
        case 'too_many':
          return sendProblem(
            request,
            reply,
            limitReached('the workspace', 'links to the portal', PORTAL_LINK_COUNT_MAX),
          );
        case 'made': {
          const base = consoleUrl?.replace(/\/$/, '') ?? originOf(request);
          const path = `/portal/${environmentId}/${made.link.portalLinkId}`;
          const { portalLinkId: id, endsAt } = made.link;
          const url = `${base}${path}#c=${made.code}`;
          return reply.send({ id, url, expires_at: endsAt.toISOString() });
        }
      }
    },
  );

  app.get(
    '/v1/portal_links',
    {
      schema: {
        tags,
        summary: 'List the links to the portal',
        description: 'Links that have not ended, newest first.',
        querystring: z.object(pageQuery(LIMIT_MAX, LIMIT_DEFAULT)),
        response: {
          200: z.object({ portal_links: z.array(link), next: nextToken }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { start, limit } = request.query;
      const before = readStart(start, position);
      const rows = await listPortalLinks(database, environmentOf(request), limit + 1, before);
      const { page, next } = splitPage(rows, limit, (row) => [row.portalLinkId]);
      return reply.send({ portal_links: page.map(toWire), next });
    },
  );

  app.get(
    '/v1/portal_origins',
    {
      schema: {
        tags,
        summary: 'The origins that may embed the portal',
        description: 'As `PUT /v1/accounts/{account_id}/environments/{environment_id}` sets them.',
        response: { 200: z.object({ portal_origins: z.array(z.string()) }), ...commonFailures },
      },
    },
    async (request, reply) => {
      const origins = await findWorkspaceOrigins(database, environmentOf(request));
      return reply.send({ portal_origins: [...origins] });
    },
  );

  app.delete(
    '/v1/portal_links/:portal_link_id',
    {
      schema: {
        tags,
        summary: 'End a link to the portal',
        description: 'Its session ends at once.',
        params: z.object({ portal_link_id: text(100) }),
        response: { 200: z.undefined(), ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const isEnded = await endPortalLink(
        database,
        environmentOf(request),
        request.params.portal_link_id,
        changeOriginOf(request),
        now(),
      );
      return isEnded
        ? reply.send(undefined)
        : sendProblem(request, reply, notFound('the link to the portal was'));
    },
  );
}

const originOf = ({ protocol, host }: FastifyRequest): string => `${protocol}://${host}`;

const NO_APPLICATION = invalidRequest([
  {
    field: 'application',
    reason: 'unknown',
    message: 'application must be the id of an application of the workspace',
    source: { pointer: '/application' },
  },
]);

const noSuchWebhook = (given: readonly number[], webhookId: number) => {
  const place = given.indexOf(webhookId);
  const message = `webhook_ids.${place} must be the id of a reporting webhook of the workspace, not ${webhookId}`;
  return invalidRequest([
    {
      field: `webhook_ids.${place}`,
      reason: 'unknown',
      message,
      source: { pointer: `/webhook_ids/${place}` },
    },
  ]);
};

const toWire = (row: PortalLink): z.infer<typeof link> => ({
  id: row.portalLinkId,
  for: row.label,
  webhook_ids: [...row.webhookIds],
  ...(row.applicationId !== null && { application: row.applicationId }),
  capabilities: [...row.capabilities],
  created_at: row.createdAt.toISOString(),
  expires_at: row.endsAt.toISOString(),
  opened_at: row.openedAt?.toISOString() ?? null,
});
