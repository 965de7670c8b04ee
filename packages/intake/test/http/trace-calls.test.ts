import type { TrackEvent } from '@sluice/domain/operations/operation';
import type { Span, SpanStart, Tracer } from '@sluice/platform/telemetry/tracing';
import { expect, test } from 'vitest';
import type { Submission } from '../../src/calls/accept.ts';
import type { CommitBatchDraft, TracedFlush } from '../../src/commit/batcher.ts';
import type { Call } from '../../src/calls/calls.ts';
import { CallTracer } from '../../src/http/trace-calls.ts';

const operation = (eventId: string): TrackEvent => ({
  type: 'event.track',
  kind: 'event',
  environmentId: 1,
  receivedAtMs: 1,
  person: { kind: 'id', value: 'ada' },
  eventId,
  name: 'n',
  data: {},
  occurredAtMs: 1,
});

/** Spans are named 1, 2, 3 in the order of their starts; calls of senders with "no" are not sampled. */
function createTracer() {
  const spans: (SpanStart & { linked: string[]; ended: [unknown, string | undefined][] })[] = [];
  const tracer: Tracer = {
    startSpan(start): Span {
      const span = {
        ...start,
        linked: [] as string[],
        ended: [] as [unknown, string | undefined][],
      };
      spans.push(span);
      return {
        traceparent: start.parent === 'no' ? undefined : String(spans.length),
        link: (traceparent) => void span.linked.push(traceparent),
        note: () => undefined,
        end: (attributes, failure) => void span.ended.push([attributes, failure]),
      };
    },
    close: () => Promise.resolve(),
  };
  return { tracer, spans };
}

/**
 * Takes a call of one event.
 *
 * @returns the event, and the function that answers the call.
 */
function take(calls: CallTracer, eventId: string, traceparent: string) {
  const event = operation(eventId);
  const call = { name: 'pipelines.track', parse: () => ({ operations: [event], issues: [] }) };
  let answered = 0;
  let end: () => void = () => undefined;
  void calls.acceptCall(
    (submission, answer) => {
      submission.call.parse(undefined, {} as never, []);
      end = () => answer({ outcome: 'accepted' });
    },
    { method: 'del', pattern: '/v1/things/:id', call: call as unknown as Call },
    traceparent,
    `request-${eventId}`,
  )({ call } as unknown as Submission, () => answered++);
  return { event, answer: () => end(), answeredCount: () => answered };
}

const commitBatchOf = (id: string, ...operations: TrackEvent[]): CommitBatchDraft => ({
  shard: 0,
  id,
  operations,
});

test('a commit batch goes on with the first traced call in it, and is linked to the others both ways', () => {
  const { tracer, spans } = createTracer();
  const calls = new CallTracer(tracer);
  const untraced = take(calls, 'a', 'no');
  const first = take(calls, 'b', 'sender');
  const second = take(calls, 'c', '');
  const commitBatches = [
    commitBatchOf('e1', untraced.event, first.event, second.event),
    commitBatchOf('e2', operation('d')),
  ];
  const flush = calls.traceFlush(commitBatches) as TracedFlush;
  const [, , , commit] = spans;
  expect(spans[1]).toMatchObject({ name: 'DELETE /v1/things/:id', parent: 'sender' });
  expect(spans[1]?.attributes).toEqual({
    'http.request.method': 'DELETE',
    'http.route': '/v1/things/:id',
    'sluice.request_id': 'request-b',
  });
  expect(commit).toMatchObject({ name: 'send events', parent: '2', links: ['3'] });
  expect(spans[2]?.linked).toEqual(['4']);
  expect([...flush.traceparents]).toEqual([['e1', '4']]);
  flush.end('unavailable');
  expect(commit?.ended).toEqual([[{ 'sluice.outcome': 'unavailable' }, 'unavailable']]);
});

test('a call’s span ends with its answer, which is given as before', () => {
  const { tracer, spans } = createTracer();
  const call = take(new CallTracer(tracer), 'a', 'sender');
  expect(spans[0]?.ended).toEqual([]);
  call.answer();
  expect(call.answeredCount()).toBe(1);
  expect(spans[0]?.ended).toEqual([
    [
      {
        'http.response.status_code': 200,
        'sluice.call': 'pipelines.track',
        'sluice.outcome': 'accepted',
      },
      undefined,
    ],
  ]);
});

test('committed lines of a stream continue its trace, and a stream that is cut counts as failed', () => {
  const { tracer, spans } = createTracer();
  const calls = new CallTracer(tracer);
  expect(calls.acceptStream('no', '')).toBeUndefined();
  const stream = calls.acceptStream('sender', 'request-s');
  const [first, second] = [operation('a'), operation('b')];
  stream?.mark([first]);
  const flush = calls.traceFlush([commitBatchOf('e1', first), commitBatchOf('e2', second)]);
  expect(spans[1]).toMatchObject({ name: 'POST /v1/stream', parent: 'sender' });
  expect(spans[2]).toMatchObject({ name: 'send events', parent: '2' });
  expect([...(flush?.traceparents ?? [])]).toEqual([['e1', '3']]);
  stream?.end(200, { 'sluice.lines': 1 }, 'cut');
  expect(spans[1]?.ended).toEqual([[{ 'sluice.lines': 1 }, 'cut']]);
});

test('a flush without a traced call is left alone', () => {
  const { tracer } = createTracer();
  const calls = new CallTracer(tracer);
  expect(calls.traceFlush([commitBatchOf('e1', take(calls, 'a', 'no').event)])).toBeUndefined();
});
