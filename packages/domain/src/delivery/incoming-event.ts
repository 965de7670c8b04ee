/**
 * Incoming events: the types of what a workspace's own calls bring, beside the registry of what happens to messages and
 * subscriptions (`reporting-event.ts`). They are reported to webhooks that list them, and to those alone.
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

/** In a webhook's list: each type that there is, also those of later versions. */
export const EVERY_EVENT_TYPE = '*';

/** True for the types of incoming events; {@link EVERY_EVENT_TYPE} is no type. */
export function isIncomingEventType(type: string): type is IncomingEventType {
  return (INCOMING_EVENT_TYPES as readonly string[]).includes(type);
}

/**
 * In the list of an application's endpoint, in place of `message`: nothing else is of that type, so an endpoint is told of its
 * own application's messages alone, also by a worker of before there were applications.
 */
export const APPLICATION_EVENT_TYPE = 'application_message';
