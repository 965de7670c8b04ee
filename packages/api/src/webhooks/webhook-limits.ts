/**
 * Limits on the settings of a webhook that a caller may choose. Pure.
 *
 * In the portal the filters, the content and the resolution decide which data of which people a receiver gets, so they
 * are the workspace's alone. Of event types a customer chooses among the link's. In an application's portal the
 * customer chooses among names of messages, which are all its own.
 *
 * An endpoint of an application gets only the application's messages, for every caller.
 */
import type { PortalGrant } from '@sluice/database/webhooks/portal-links';
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import { EVERY_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
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

/** Settings of messages, without any data about a person. */
const NOT_OF_APPLICATIONS = [
  'full_resolution',
  'with_content',
  'with_imports',
  'with_late',
  'with_person_attributes',
] as const;

/**
 * Reason why an endpoint of an application may not be changed as requested; undefined if it may, and for any other
 * webhook.
 */
export function changesBeyondApplication(
  body: z.infer<typeof webhookChanges>,
  { applicationId }: Pick<Webhook, 'applicationId'>,
): Problem | undefined {
  if (applicationId === null) return undefined;
  const given = NOT_OF_APPLICATIONS.find((field) => body[field] === true);
  if (given)
    return refused(
      given,
      `${given} is not for endpoints of applications, which receive only their own messages; leave it out`,
    );
  const beyond = body.events?.find((each) => !ENDPOINT_EVENTS.includes(each));
  return beyond === undefined
    ? undefined
    : refused(
        'events',
        `events must be ${ENDPOINT_EVENTS.join(', ')} for endpoints of applications, which receive only their own messages`,
      );
}

/**
 * Reason why the webhook may not be made as requested; undefined if it may.
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
  if (allowed.includes(EVERY_EVENT_TYPE)) return undefined;
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
  refused(field, `${field} is set by the workspace, and not in the portal; leave it out`);

const refused = (field: string, message: string): Problem =>
  invalidRequest([{ field, reason: 'not_allowed', message, source: { pointer: `/${field}` } }]);
