/** Publishing: who may, and what is answered of each message. */
import { expect, test } from 'vitest';
import { routes } from '../../src/calls/calls.ts';
import { answerOf } from '../../src/http/answer.ts';
import { createIntake, PIPELINES } from '../support/intake-use-case.ts';

const GOOD = { event_type: 'order.paid', payload: { total: 5 } };

async function published(body: unknown) {
  const intake = createIntake();
  const outcome = await intake.submit('publish', body);
  const call = routes.find(({ pattern }) => pattern === '/v1/publish')?.call;
  if (!call) throw new Error('no such route');
  const answer = answerOf(call, outcome);
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

test('where no message is right the call is refused and nothing is committed', async () => {
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

test('a write key, which stands in pages, publishes nothing', async () => {
  const { submit, committed } = createIntake();
  const outcome = await submit('publish', GOOD, { authorization: PIPELINES });
  expect(outcome).toEqual({ outcome: 'unauthorized' });
  expect(committed).toEqual([]);
});
