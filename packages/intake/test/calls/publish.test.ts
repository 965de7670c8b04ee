/** Publishing: the callers who may, and the answer for each message. */
import { readSchema } from '@sluice/domain/event-schemas/schema-document';
import { expect, test } from 'vitest';
import { routes } from '../../src/calls/calls.ts';
import { readBody, readLargeBody } from '../../src/calls/read-body.ts';
import { answerOf } from '../../src/http/answer.ts';
import { createIntake, PIPELINES } from '../support/intake-use-case.ts';

const GOOD = { event_type: 'order.paid', payload: { total: 5 } };

function publishCall() {
  const call = routes.find(({ pattern }) => pattern === '/v1/publish')?.call;
  if (!call) throw new Error('no such route');
  return call;
}

async function published(
  body: unknown,
  read?: { readonly text: string; readonly isStrict: boolean },
) {
  const intake = createIntake();
  const submission = read && {
    isStrict: read.isStrict,
    body: readBody(Buffer.from(read.text), publishCall().itemsKey, () => true),
  };
  const outcome = await intake.submit('publish', body, submission);
  const answer = answerOf(publishCall(), outcome);
  return { committed: intake.committed, ...answer, body: JSON.parse(answer.body) as object };
}

test('a message is committed, and its id is answered', async () => {
  const { committed, status, body } = await published({ ...GOOD, event_id: 'e' });
  expect(committed).toMatchObject([
    { type: 'message.publish', environmentId: 2, eventId: 'e', eventType: 'order.paid' },
  ]);
  expect({ status, body }).toEqual({
    status: '200 OK',
    body: { results: [{ status: 'accepted', event_id: 'e' }] },
  });
});

test('each message of a list has a result, in their order', async () => {
  const list = [{ ...GOOD, event_id: 'a' }, { payload: {} }, 7, { ...GOOD, event_id: 'b' }];
  const { committed, status, body } = await published({ messages: list });
  expect(committed.map((operation) => operation.type)).toEqual([
    'message.publish',
    'message.publish',
  ]);
  expect({ status, body }).toEqual({
    status: '207 Multi-Status',
    body: {
      results: [
        { status: 'accepted', event_id: 'a' },
        {
          status: 'refused',
          errors: [{ field: 'event_type', reason: 'required', message: 'event_type is required' }],
        },
        { status: 'refused', errors: [expect.objectContaining({ field: null })] },
        { status: 'accepted', event_id: 'b' },
      ],
    },
  });
});

const MESSAGE = '{"event_type":"a","payload":{}}';

test.each([
  ['a key twice', '{"event_type":"a","payload":{"k":1,"k":2}}', 'payload.k', true],
  ['NaN', '{"event_type":"a","payload":{"k":NaN}}', 'payload.k', true],
  ['a comma too many', '{"event_type":"a","payload":{"k":1,}}', null, false],
])(
  '%s costs its own message, and each result is of its message',
  async (_, wrong, field, isStrict) => {
    const text = `{"messages":[${MESSAGE},${wrong},${MESSAGE}]}`;
    const { committed, status, body } = await published({}, { text, isStrict });
    expect(committed.filter(({ type }) => type === 'message.publish')).toHaveLength(2);
    expect({ status, body }).toMatchObject({
      status: '207 Multi-Status',
      body: {
        results: [
          { status: 'accepted' },
          { status: 'refused', errors: [{ field }] },
          { status: 'accepted' },
        ],
      },
    });
  },
);

test('a fault beside the messages refuses all of them: no result would be its', async () => {
  const text = `{"messages":[${MESSAGE},${MESSAGE}],"note":1,"note":2}`;
  const { committed, status, body } = await published({}, { text, isStrict: true });
  expect(committed).toEqual([]);
  expect({ status, body }).toMatchObject({
    status: '400 Bad Request',
    body: { errors: [{ field: 'note' }] },
  });
});

test('a thousand messages of ninety values are read; a body of 300,000 empty lists is too large', () => {
  const payload = Object.fromEntries(Array.from({ length: 88 }, (_, key) => [`k${key}`, key]));
  const messages = Array.from({ length: 1_000 }, () => ({ event_type: 'a', payload }));
  const read = (text: string) => readLargeBody(Buffer.from(text), publishCall()).outcome;
  expect(read(JSON.stringify({ messages }))).toBe('read');
  expect(read(`{"messages":[${'[],'.repeat(300_000)}[]]}`)).toBe('too-large');
});

test('if every message is wrong, the call is refused and commits no operation', async () => {
  const { committed, status, body } = await published({ messages: [{ payload: {} }] });
  expect(committed).toEqual([]);
  expect({ status, body }).toMatchObject({ status: '400 Bad Request', body: { errors: [{}] } });
});

test('calls that publish have a rate of their own, and count for no other', async () => {
  const { submit } = createIntake({ publishedPerSecond: 2 });
  const outcomes = async (name: string, body: object) => (await submit(name, body)).outcome;
  expect(await outcomes('publish', GOOD)).toBe('accepted');
  expect(await outcomes('publish', GOOD)).toBe('accepted');
  expect(await outcomes('publish', GOOD)).toBe('rate-limited');
  expect(await outcomes('track.v1.event', { name: 'bought' })).toBe('accepted');
});

test('a message that is not on disk is answered so, for its sender to send it again', async () => {
  const { submit } = createIntake({ isBrokerAway: true });
  expect(await submit('publish', GOOD)).toEqual({ outcome: 'overloaded', retryAfterSeconds: 7 });
});

test('publish refuses a write key, which is public in pages', async () => {
  const { submit, committed } = createIntake();
  const outcome = await submit('publish', GOOD, { authorization: PIPELINES });
  expect(outcome).toEqual({ outcome: 'unauthorized' });
  expect(committed).toEqual([]);
});

test('the answer names the place of a payload that does not fit its schema, in a list and alone', async () => {
  const read = readSchema({ required: ['total'] });
  if (read.outcome === 'refused') throw new Error(read.message);
  const { schema } = read;
  const eventTypes = {
    ofWorkspace: (environmentId: number) =>
      environmentId === 2
        ? (name: string) => (name === 'order.paid' ? { version: 1, schema } : undefined)
        : undefined,
  };
  const answer = async (body: unknown) => {
    const intake = createIntake({ eventTypes });
    const { status, body: text } = answerOf(publishCall(), await intake.submit('publish', body));
    return { status, body: JSON.parse(text) as object };
  };
  const wrong = { event_type: 'order.paid', payload: {} };
  expect(await answer({ messages: [GOOD, wrong] })).toMatchObject({
    status: '207 Multi-Status',
    body: {
      results: [
        { status: 'accepted' },
        {
          status: 'refused',
          errors: [{ field: 'payload.total', pointer: '/payload/total', reason: 'invalid' }],
        },
      ],
    },
  });
  for (const [body, pointer] of [
    [wrong, '/payload/total'],
    [{ messages: [wrong] }, '/messages/0/payload/total'],
  ] as const)
    expect(await answer(body)).toMatchObject({
      status: '400 Bad Request',
      body: { errors: [{ field: 'payload.total', source: { pointer } }] },
    });
});
