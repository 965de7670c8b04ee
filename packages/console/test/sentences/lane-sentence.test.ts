/** The sentence of a webhook: the reason why its deliveries wait, with the number and the time. */
import { expect, test } from 'vitest';
import { laneSentence, type LaneState } from '../../src/sentences/lane-sentence.ts';

const NOW_MS = Date.parse('2026-11-25T17:45:00Z');
const at = (time: string): number => Date.parse(`2026-11-25T${time}Z`) / 1000;

const HEAD = {
  sequence: 1,
  attempts: 4,
  first_attempt_at: at('17:37:10'),
  status: 500,
  failure: 'status',
  failure_meaning: 'The endpoint answered, but not with a 2xx status.',
  failure_message: null,
  abandons_at: Date.parse('2026-12-02T17:37:10Z') / 1000,
} as const;

const lane = (change: Partial<LaneState>): LaneState => ({
  state: 'healthy',
  disabled_at: null,
  disabled_by: null,
  sending: false,
  unfinished_count: 0,
  next_probe_at: null,
  last_delivered_at: null,
  head: null,
  ...change,
});
const failing = (head: Partial<NonNullable<LaneState['head']>>, count = 34): LaneState =>
  lane({
    state: 'failing',
    unfinished_count: count,
    next_probe_at: at('18:44:00'),
    head: { ...HEAD, ...head },
  });

test.each([
  ['everything delivered', lane({}), 'good', 'Everything is delivered.'],
  [
    'everything delivered, with the last success',
    lane({ last_delivered_at: at('17:37:00') }),
    'good',
    'Everything is delivered. The last one in the minute from 2026-11-25 17:37:00 UTC.',
  ],
  ['one waits', lane({ unfinished_count: 1 }), 'busy', 'Sending: 1 delivery waits.'],
  [
    'a status',
    failing({}),
    'bad',
    'Delivery 1 gets 500 since 2026-11-25 17:37:10 UTC (4 tries). 33 later ones wait behind it, in order.',
  ],
  [
    'one try, nothing behind',
    failing({ attempts: 1 }, 1),
    'bad',
    'Delivery 1 gets 500 since 2026-11-25 17:37:10 UTC (1 try). No other one waits behind it.',
  ],
  [
    'a time-out, one behind',
    failing({ status: null, failure: 'timeout' }, 2),
    'bad',
    'Delivery 1 gets no whole answer in time since 2026-11-25 17:37:10 UTC (4 tries). 1 later one waits behind it.',
  ],
  [
    'a class that is not known',
    failing({ status: null, failure: 'new_class', failure_message: 'it broke' }, 1),
    'bad',
    'Delivery 1 fails: it broke since 2026-11-25 17:37:10 UTC (4 tries). No other one waits behind it.',
  ],
  [
    'paused by a user',
    lane({
      state: 'disabled',
      disabled_at: at('10:00:00'),
      disabled_by: { type: 'user', name: 'Ada' },
      unfinished_count: 12,
    }),
    'quiet',
    'Paused by Ada on 2026-11-25 10:00:00 UTC.',
  ],
] as const)('%s', (_name, state, tone, text) => {
  expect(laneSentence(state, NOW_MS)).toMatchObject({ tone, text });
});

test('the next try has its time and its wait, and a refused address is explained', () => {
  expect(laneSentence(failing({}), NOW_MS).more).toBe(
    'Next try in 59 min, at 2026-11-25 18:44:00 UTC. Given up on 2026-12-02 17:37:10 UTC.',
  );
  expect(
    laneSentence(failing({ status: null, failure: 'address_refused' }), NOW_MS).more,
  ).toContain('private addresses are not called');
});
