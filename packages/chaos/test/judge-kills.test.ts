/** The verdict on a run with kills. */
import { expect, test } from 'vitest';
import { judgeKills } from '../src/kills/judge-kills.ts';
import type { KillsReport } from '../src/kills/run-kills.ts';

const HELD: KillsReport = {
  broker: 'redis',
  seed: 1,
  events: 5_000,
  acknowledged: 5_000,
  firstAcknowledgedMs: 1_500,
  firstDeliveryMs: 2_000,
  lastDeliveryMs: 5_000,
  lastDeliveryAfterLoadMs: 1_000,
  lost: 0,
  doubled: 40,
  inFlight: 40,
};

test.each([
  [{}, []],
  [{ lost: 1 }, ['1 events were not delivered']],
  [{ doubled: 41 }, ['41 deliveries came twice, but only 40 were in flight']],
  [{ acknowledged: 4_985 }, ['15 of 5000 events were never acknowledged']],
  [{ lastDeliveryMs: 5_001 }, ['the last delivery came 5001 ms after the kill, not within 5000']],
])('a run with %j breaks %j', (difference, problems) => {
  expect(judgeKills({ ...HELD, ...difference })).toEqual(problems);
});
