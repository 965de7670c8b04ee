import { expect, test } from 'vitest';
import {
  lineOfAttempt,
  lineOfOperation,
  linesOfIssues,
  matchesTail,
} from '../../src/operations/tail.ts';
import { identify, merge, NOW_MS, publish, track } from '../../src/testing/sample-operations.ts';

const line = lineOfOperation(
  track('email:Ada@Example.com', 'bought', {
    eventId: 'e1',
    anonymousId: 'z1',
    data: { secret: 'x' },
  }),
  'accepted',
  'pipelines.track',
);

test('a line of an event has its people, name, type and source, but not its data', () => {
  expect(line).toEqual({
    kind: 'received',
    at_ms: NOW_MS,
    outcome: 'accepted',
    name: 'bought',
    people: [{ email: 'Ada@Example.com' }, { anonymous_id: 'z1' }],
    details: { type: 'event.track', source: 'pipelines.track', event_id: 'e1' },
  });
});

test('a filter by person finds any identifier, emails in any letter case and others exactly', () => {
  expect(matchesTail({ person: 'ada@example.COM' }, line)).toBe(true);
  expect(matchesTail({ person: 'z1' }, line)).toBe(true);
  expect(matchesTail({ person: 'Z1' }, line)).toBe(false);
  const both = lineOfOperation(merge('id:1', 'email:b@x'), 'accepted', 'track.merge');
  expect(matchesTail({ person: '1' }, both)).toBe(true);
  expect(matchesTail({ person: 'B@x' }, both)).toBe(true);
  const named = lineOfOperation(identify('id:1', { email: 'c@x' }), 'accepted', 'track.identify');
  expect(matchesTail({ person: 'c@x' }, named)).toBe(true);
});

test('every filter that is given must match, and an empty filter matches every line', () => {
  expect(matchesTail({}, line)).toBe(true);
  expect(matchesTail({ name: 'bought', outcome: 'accepted' }, line)).toBe(true);
  expect(matchesTail({ name: 'bought', outcome: 'refused' }, line)).toBe(false);
  expect(matchesTail({ name: 'Bought' }, line)).toBe(false);
});

test('a filter by source finds a kind of call or all of its family, and one by webhook its attempts', () => {
  for (const source of ['pipelines', 'pipelines.track'])
    expect(matchesTail({ source }, line)).toBe(true);
  for (const source of ['pipeline', 'pipelines.', 'track', 'pipelines.track.more', ''])
    expect(matchesTail({ source }, line)).toBe(false);
  const facts = {
    sequence: 1,
    attempt: 1,
    outcome: 'delivered',
    status: 200,
    failure: null,
  } as const;
  const attempt = { ...facts, webhookId: 12, durationMs: 1, eventType: 'event', body: {} };
  const reported = lineOfAttempt(attempt, NOW_MS);
  expect(matchesTail({ webhookId: '12' }, reported)).toBe(true);
  expect(matchesTail({ webhookId: '1' }, reported)).toBe(false);
  expect(matchesTail({ source: 'undefined' }, reported)).toBe(false);
  expect(matchesTail({ webhookId: '12' }, line)).toBe(false);
});

test('texts are cut, and a filter as long as the text still finds it', () => {
  const name = 'n'.repeat(5_000);
  const long = lineOfOperation(track(`id:${'i'.repeat(300)}`, name), 'accepted', 's');
  expect(JSON.stringify(long).length).toBeLessThan(1_000);
  expect(matchesTail({ name, person: 'i'.repeat(300) }, long)).toBe(true);
});

test('an attempt is named by its event type and found by whom the report is about', () => {
  const body = {
    event_id: 'r1',
    data: {
      customer_id: '7',
      identifiers: { id: '7', email: null, svc_id: 'abc' },
      recipient: 'a@x',
    },
  };
  const attempt = {
    webhookId: 3,
    sequence: 9,
    attempt: 2,
    outcome: 'retrying',
    status: 500,
  } as const;
  const published = lineOfAttempt(
    { ...attempt, failure: 'status', durationMs: 1.6, eventType: 'email_sent', body },
    NOW_MS,
  );
  expect(published).toEqual({
    kind: 'reported',
    at_ms: NOW_MS,
    outcome: 'retrying',
    name: 'email_sent',
    people: [{ id: '7' }, { svc_id: 'abc' }, { recipient: 'a@x' }],
    details: {
      event_id: 'r1',
      webhook_id: 3,
      sequence: 9,
      attempt: 2,
      status: 500,
      failure: 'status',
      duration_ms: 2,
    },
  });
});

test('an attempt to deliver an incoming event is found by its name, and by its anonymous id', () => {
  const attempt = {
    ...({ webhookId: 3, sequence: 9, attempt: 1, outcome: 'delivered', status: 200 } as const),
    ...{ failure: null, durationMs: 1, eventType: 'event' },
  };
  const body = {
    event_id: 'e1',
    object_type: 'event',
    metric: 'order_placed',
    data: { identifiers: { id: null, email: null }, anonymous_id: 'z1' },
  };
  const reported = lineOfAttempt({ ...attempt, body }, NOW_MS);
  expect(reported).toMatchObject({ name: 'order_placed', people: [{ anonymous_id: 'z1' }] });
  expect(matchesTail({ name: 'order_placed', person: 'z1' }, reported)).toBe(true);
  const published = lineOfOperation(publish('invoice.paid'), 'accepted', 'publish');
  expect(published).toMatchObject({ name: 'invoice.paid', people: [] });
});

test('a body of any shape makes a line', () => {
  const attempt = {
    webhookId: 3,
    sequence: 9,
    attempt: 1,
    outcome: 'delivered',
    status: 200,
  } as const;
  for (const body of [null, [], 'text', { data: 1 }, { data: { identifiers: [] } }]) {
    const published = lineOfAttempt(
      { ...attempt, failure: null, durationMs: 1, eventType: 'email_sent', body },
      NOW_MS,
    );
    expect(published.people).toEqual([]);
  }
});

test('an issue is refused if something was not taken, else mended, and a call has at most twenty', () => {
  const published = linesOfIssues(
    Array.from({ length: 30 }, (_, index) => ({
      code: index === 0 ? ('timestamp_invalid' as const) : ('required' as const),
      field: 'event',
      message: 'm',
    })),
    NOW_MS,
    'pipelines.batch',
  );
  expect(published).toHaveLength(20);
  expect(published.map(({ outcome }) => outcome).slice(0, 2)).toEqual(['mended', 'refused']);
});
