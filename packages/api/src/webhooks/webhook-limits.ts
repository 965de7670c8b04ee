/**
 * What of a webhook's configuration a caller may not set. Pure.
 *
 * A link to the portal: the filters, the content and the resolution decide whose and which data a receiver gets, so they are
 * the workspace's alone; of event types a customer chooses among those of the link. In an application's portal the
 * customer chooses among names of messages, which are all its own.
 *
 * An endpoint of an application: it is told of the application's messages and of nothing else, whoever asks.
 */
import type { PortalGrant } from '@sluice/database/webhooks/portal-links';
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import type { z } from 'zod';
import { invalidRequest, type Problem } from '../http/problem.ts';
import { ENDPOINT_EVENTS, type newWebhook, type webhookChanges } from './webhook-fields.ts';

const OF_THE_WORKSPACE = [
  'attribute_filters',
  'event_names',
  'full_resolution',
  'with_content',
  'with_imports',
  'with_late',
  'with_person_attributes',
] as const;

/** What messages are told with, and nothing about a person. */
const NOT_OF_APPLICATIONS = [
  'full_resolution',
  'with_content',
  'with_imports',
  'with_late',
  'with_person_attributes',
] as const;

/**
 * Why an endpoint of an application may not be changed as it was asked for; undefined where it may, and of any other
 * webhook.
 */
export function changesBeyondApplication(
  body: z.infer<typeof webhookChanges>,
  { applicationId }: Pick<Webhook, 'applicationId'>,
): Problem | undefined {
  if (applicationId === null) return undefined;
  const given = NOT_OF_APPLICATIONS.find((field) => body[field] === true);
  const message = 'is not for endpoints of applications, which receive only their own messages';
  if (given) return refused(given, `${given} ${message}`);
  const beyond = body.events?.find((each) => !ENDPOINT_EVENTS.includes(each));
  return beyond === undefined ? undefined : refused('events', `events ${message}`);
}

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
  const given = fieldsOfWorkspace(grant).find(
    (field) => body[field] !== null && body[field] !== false,
  );
  if (grant.applicationId !== null)
    return given ? ofTheWorkspace(given) : changesBeyondApplication(body, grant);
  return given ? ofTheWorkspace(given) : eventsBeyond(body.events, grant.eventTypes ?? []);
}

/** The same of a change. */
export function changesBeyondGrant(
  grant: PortalGrant | null,
  body: z.infer<typeof webhookChanges>,
  before: Pick<Webhook, 'events'>,
): Problem | undefined {
  if (!grant) return undefined;
  const given = fieldsOfWorkspace(grant).find((field) => body[field] !== undefined);
  if (given) return ofTheWorkspace(given);
  if (grant.applicationId !== null) return undefined;
  return eventsBeyond(body.events ?? [], [...before.events, ...(grant.eventTypes ?? [])]);
}

function eventsBeyond(events: readonly string[], allowed: readonly string[]): Problem | undefined {
  const beyond = events.find((each) => !allowed.includes(each));
  if (beyond === undefined) return undefined;
  return refused(
    'events',
    `events must be among the events of the link to the portal, not ${beyond}`,
  );
}

const fieldsOfWorkspace = ({ applicationId }: PortalGrant) =>
  applicationId === null
    ? OF_THE_WORKSPACE
    : OF_THE_WORKSPACE.filter((field) => field !== 'event_names');

const ofTheWorkspace = (field: string): Problem =>
  refused(field, `${field} is set by the workspace, and not in the portal`);

const refused = (field: string, message: string): Problem =>
  invalidRequest([{ field, reason: 'not_allowed', message, source: { pointer: `/${field}` } }]);
