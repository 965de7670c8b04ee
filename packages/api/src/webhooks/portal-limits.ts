/**
 * What a link to the portal leaves open of a webhook's configuration. The filters, the content and the resolution decide whose
 * and which data a receiver gets, so they are the workspace's alone; of event types a customer chooses among those of
 * the link. Pure.
 */
import type { PortalGrant } from '@sluice/database/webhooks/portal-links';
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import type { z } from 'zod';
import { invalidRequest, type Problem } from '../http/problem.ts';
import type { newWebhook, webhookChanges } from './webhook-fields.ts';

const OF_THE_WORKSPACE = [
  'attribute_filters',
  'event_names',
  'full_resolution',
  'with_content',
  'with_imports',
  'with_late',
  'with_person_attributes',
] as const;

/**
 * Why the webhook may not be made as it was asked for; undefined where it may.
 *
 * @param grant - null outside the portal.
 */
export function newBeyondGrant(
  grant: PortalGrant | null,
  body: z.infer<typeof newWebhook>,
): Problem | undefined {
  if (!grant) return undefined;
  const given = OF_THE_WORKSPACE.find((field) => body[field] !== null && body[field] !== false);
  return given ? ofTheWorkspace(given) : eventsBeyond(body.events, grant.eventTypes ?? []);
}

/** The same of a change. */
export function changesBeyondGrant(
  grant: PortalGrant | null,
  body: z.infer<typeof webhookChanges>,
  before: Pick<Webhook, 'events'>,
): Problem | undefined {
  if (!grant) return undefined;
  const given = OF_THE_WORKSPACE.find((field) => body[field] !== undefined);
  if (given) return ofTheWorkspace(given);
  return eventsBeyond(body.events ?? [], [...before.events, ...(grant.eventTypes ?? [])]);
}

function eventsBeyond(events: readonly string[], allowed: readonly string[]): Problem | undefined {
  const beyond = events.find((each) => !allowed.includes(each));
  if (beyond === undefined) return undefined;
  return refused(
    'events',
    `events must be of those that the link to the portal allows, not ${beyond}`,
  );
}

const ofTheWorkspace = (field: string): Problem =>
  refused(field, `${field} is set by the workspace, and not in the portal`);

const refused = (field: string, message: string): Problem =>
  invalidRequest([{ field, reason: 'not_allowed', message, source: { pointer: `/${field}` } }]);
