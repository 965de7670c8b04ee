/** Subscription of a webhook: in words, and in the lines of its form. */
import { expect, test } from 'vitest';
import {
  conditionLines,
  conditionsOf,
  type Condition,
  linesOf,
  sampleType,
  subscriptionText,
  typesOf,
  type Subscription,
} from '../../src/sentences/subscription-text.ts';

const subscription = (changes: Partial<Subscription>): Subscription => ({
  events: ['event'],
  event_names: null,
  attribute_filters: null,
  full_resolution: false,
  with_content: false,
  with_imports: false,
  with_late: false,
  with_person_attributes: false,
  ...changes,
});

test.each<[Partial<Subscription>, string]>([
  [{}, 'event'],
  [{ event_names: ['order_placed'] }, 'event order_placed'],
  [{ event_names: ['a', 'b'] }, 'event, 2 names'],
  [{ events: ['message'], event_names: ['invoice.paid'] }, 'message invoice.paid'],
  [{ events: ['email_sent'], event_names: ['a'] }, 'email_sent'],
  [{ events: ['event', 'page'] }, '2 event types'],
  [{ events: ['event', '*'] }, 'every event type'],
])('%j is "%s"', (changes, text) => {
  expect(subscriptionText(subscription(changes))).toBe(text);
});

test('a test event is of a type that the webhook lists', () => {
  expect(sampleType(subscription({ events: ['page', '*'] }))).toBe('page');
  expect(sampleType(subscription({ events: ['*'] }))).toBe('event');
});

test('conditions are lines, and lines are conditions', () => {
  const conditions: Condition[] = [
    { field: 'data.properties.total', operator: 'gte', values: ['100'] },
    { field: 'metric', operator: 'in', values: ['order placed', 'paid'] },
    { field: 'data.properties.coupon', operator: 'exists' },
  ];
  const lines = conditionLines(conditions);
  expect(lines).toBe(
    'data.properties.total gte 100\nmetric in order placed,paid\ndata.properties.coupon exists',
  );
  expect(conditionsOf(`\n${lines}\n\n`)).toEqual(conditions);
  expect(conditionsOf('metric')).toEqual([{ field: 'metric', operator: '' }]);
  expect(conditionLines(null)).toBe('');
});

test('a condition whose line is unchanged stays as it was, also with a comma in its value', () => {
  const before: Condition[] = [
    { field: 'data.properties.city', operator: 'eq', values: ['Washington, D.C.'] },
    { field: 'data.properties.total', operator: 'gte', values: ['100'] },
  ];
  const changed = conditionLines(before).replace('gte 100', 'gte 200');
  expect(conditionsOf(`${changed}\nmetric in a,b`, before)).toEqual([
    before[0],
    { field: 'data.properties.total', operator: 'gte', values: ['200'] },
    { field: 'metric', operator: 'in', values: ['a', 'b'] },
  ]);
});

test('names are a line each, and types are separated by anything', () => {
  expect(linesOf(' Order placed \n\n b,c\n')).toEqual(['Order placed', 'b,c']);
  expect(typesOf(' email_sent, sms_sent\npush_sent ')).toEqual([
    'email_sent',
    'sms_sent',
    'push_sent',
  ]);
  expect(typesOf('')).toEqual([]);
});
