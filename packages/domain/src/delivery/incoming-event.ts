/**
 * Incoming events: the types of events that a workspace's own calls bring.
 *
 * They stand beside the registry of events about messages and subscriptions (`reporting-event.ts`). They are reported
 * only to webhooks that list them.
 */

/** Tracked events, views of pages and screens, changes of people and of objects, deletions of either, published messages. */
export const INCOMING_EVENT_TYPES = [
  'event',
  'page',
  'screen',
  'identify',
  'group',
  'delete',
  'message',
] as const;

export type IncomingEventType = (typeof INCOMING_EVENT_TYPES)[number];

/** In a webhook's list: every type, including types of later versions. */
export const EVERY_EVENT_TYPE = '*';

/** True for the types of incoming events; {@link EVERY_EVENT_TYPE} is no type. */
export function isIncomingEventType(type: string): type is IncomingEventType {
  return (INCOMING_EVENT_TYPES as readonly string[]).includes(type);
}

/**
 * In the list of an application's endpoint, in place of `message`. No event has this type, so an endpoint receives only
 * its own application's messages, also from a worker that is older than applications.
 */
export const APPLICATION_EVENT_TYPE = 'application_message';
