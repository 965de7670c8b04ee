/** The path of an event as a timeline. */
import { expect, test } from 'vitest';
import { traceLines } from '../src/commands/trace-lines.ts';

const AT_MS = 1_795_628_230_785;

test('each step shows its time after the first step, in the order of time, and waiting deliveries are last', () => {
  const attempt = {
    ...{ attempt: 1, started_at_ms: AT_MS + 108, duration_ms: 24 },
    outcome: 'retrying' as const,
    ...{ status: null, failure: 'timeout', failure_message: 'no answer\u001B[2J' },
  };
  const delivery = {
    ...{ webhook_id: 1, sequence: 3, event_id: 'm1', event_type: 'event', resend_of: null },
    ...({ state: 'retrying', origin: 'event' } as const),
    logged_at_ms: AT_MS + 50,
    attempts: [attempt, { ...attempt, attempt: 2, started_at_ms: AT_MS + 45_000, status: 200 }],
  };
  const lines = traceLines({
    event_id: 'm1',
    caused_by_event_id: null,
    received: { at_ms: AT_MS, source: 'pipelines.track' },
    envelope: { id: 'E1', made_at_ms: AT_MS, operations: 2, processed_at_ms: AT_MS + 49 },
    event: {
      ...{ kind: 'event', name: 'Order Completed', svc_id: 'a3', anonymous_id: null },
      ...{ occurred_at_ms: AT_MS, processed_at_ms: AT_MS + 49 },
    },
    deliveries: [
      delivery,
      { ...delivery, webhook_id: 2, sequence: 1, state: 'pending', attempts: [] },
    ],
  });
  expect(lines.slice(0, 3)).toEqual(['event Order Completed  m1', 'person a3', '']);
  expect(lines[3]).toBe('2026-11-25 17:37:10.785 UTC       +0 ms  received by pipelines.track');
  expect(lines[5]).toBe('2026-11-25 17:37:10.834 UTC      +49 ms  processed');
  expect(lines.some((line) => line.includes('\u001B'))).toBe(false);
  expect(lines.at(-2)).toBe(
    '2026-11-25 17:37:55.785 UTC     +45.0 s  webhook 1 #3 attempt 2: 200 in 24 ms, retrying',
  );
  expect(lines.at(-1)).toContain('webhook 2 #1 is pending');
});
