/** `sluice webhooks probe`: the result of the attempt. */
import type { LaneState } from '@sluice/console/sentences/lane-sentence';
import { expect, test } from 'vitest';
import { followProbe } from '../src/webhooks/follow-probe.ts';
import { collectingTerminal } from './collecting-terminal.ts';

const head = {
  ...{ sequence: 7, attempts: 4, first_attempt_at: 1_000, status: 500, failure: 'server_error' },
  ...{ failure_meaning: null, failure_message: null, abandons_at: null },
};
const state = (changed: Partial<typeof head> | null): LaneState => ({
  ...{ state: 'failing', disabled_at: null, disabled_by: null, sending: false },
  ...{
    unfinished_count: 3,
    next_probe_at: 9_000,
    last_delivered_at: null,
    head: changed && { ...head, ...changed },
  },
});

function follow(
  states: readonly LaneState[],
  pauses: number[] = [],
  deliveries: Readonly<Record<number, string>> = { 7: 'delivered' },
) {
  let asked = 0;
  return followProbe(
    {
      state: async () => states[Math.min(asked++, states.length - 1)] as LaneState,
      deliveryState: async (sequence) => deliveries[sequence] ?? 'pending',
      terminal: collectingTerminal(),
      pause: async (durationMs) => void pauses.push(durationMs),
      signal: new AbortController().signal,
    },
    head,
  );
}

test('a delivery that was given up or skipped meanwhile is not called delivered', async () => {
  const gone = [state({}), state({ sequence: 8, attempts: 1 })];
  expect(await follow(gone, [], { 7: 'abandoned' })).toEqual({
    sequence: 7,
    outcome: 'abandoned',
  });
});

test('a delivery that has left the head of the queue shows its own state', async () => {
  expect(await follow([state({}), state(null)])).toEqual({ sequence: 7, outcome: 'delivered' });
  expect(await follow([state({ sequence: 8, attempts: 1 })])).toMatchObject({
    outcome: 'delivered',
  });
});

test('another failed attempt shows its status and the time of the next attempt', async () => {
  expect(await follow([state({}), state({}), state({ attempts: 5, status: 503 })])).toMatchObject({
    ...{ outcome: 'failed', attempts: 5, status: 503, next_probe_at: 9_000 },
  });
});

test('one that no worker gets to is not waited for without end', async () => {
  const pauses: number[] = [];
  expect(await follow([state({})], pauses)).toEqual({ sequence: 7, outcome: 'unknown' });
  expect(pauses.reduce((a, b) => a + b, 0)).toBe(30_000);
});
