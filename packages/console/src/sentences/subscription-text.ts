/** Events of a webhook, between its configuration and a form's words. */
import type { Described } from '../client/operations.ts';

/** The part of `GET /v1/reporting_webhooks/{id}` about its events. */
export type Subscription = Pick<
  Described<'ReportingWebhook'>,
  | 'events'
  | 'event_names'
  | 'attribute_filters'
  | 'full_resolution'
  | 'with_content'
  | 'with_imports'
  | 'with_late'
  | 'with_person_attributes'
>;

export type Condition = NonNullable<Subscription['attribute_filters']>[number];

type EventType = Described<'ListableEventType'>;

/** Types of incoming events, and of all events, with the words of the form. */
export const INCOMING_TYPES: Readonly<Record<string, string>> = {
  event: 'Tracked events',
  page: 'Pages',
  screen: 'Screens',
  identify: 'Changes of people',
  group: 'Objects and relationships',
  delete: 'Deletions',
  message: 'Published messages',
  '*': 'Every type that there is',
};

/** True for the types that the form has a box for. */
export const isIncoming = (type: string): boolean => Object.hasOwn(INCOMING_TYPES, type);

/** The type of a test event. */
export const sampleType = ({
  events: [first = 'event'],
}: Pick<Subscription, 'events'>): Exclude<EventType, '*'> =>
  first === '*' ? 'event' : (first as Exclude<EventType, '*'>);

/** In a few words, for a line under the webhook's name. */
export function subscriptionText({ events, event_names: names }: Subscription): string {
  const [only] = events;
  if (events.includes('*')) return 'every event type';
  if (events.length > 1) return `${events.length} event types`;
  // Names do not apply to other types.
  if ((only !== 'event' && only !== 'message') || names === null) return only ?? '';
  const [name = ''] = names;
  return names.length === 1 ? `${only} ${name}` : `${only}, ${names.length} names`;
}

/** One condition a line: `data.properties.total gte 100`. */
export const conditionLines = (conditions: readonly Condition[] | null): string =>
  (conditions ?? [])
    .map(({ field, operator, values = [] }) => [field, operator, values.join(',')].join(' ').trim())
    .join('\n');

/**
 * Reads lines as {@link conditionLines} writes them. The API checks them.
 *
 * @param before - the conditions from which the text was made. Each stays as it was if its line did: a value with a
 *   comma is more than one in a line.
 */
export function conditionsOf(
  text: string,
  before: readonly Condition[] | null = null,
): readonly Condition[] {
  const known = new Map((before ?? []).map((each) => [conditionLines([each]), each]));
  return linesOf(text).map((line) => {
    const kept = known.get(line);
    if (kept) return kept;
    const [, field = '', operator = '', values] = /^(\S+)\s*(\S*)(?:\s+(.*))?$/.exec(line) ?? [];
    return {
      field,
      operator: operator as Condition['operator'],
      ...(values !== undefined && { values: values.split(',') }),
    };
  });
}

/** Lines without blanks at their ends, and without empty ones. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Types that are separated by blanks, commas or lines. The API checks them. */
export const typesOf = (text: string): EventType[] =>
  text.split(/[\s,]+/).filter((type) => type !== '') as EventType[];
