/**
 * Calls take effect in the order in which they were acknowledged.
 *
 * They may use any names. The tests are single cases that went wrong before, many times each, and random sequences
 * against the reference model. `npm run chaos -- --oracle order` runs more sequences, also with workers and brokers
 * killed. `ORDER_CASE_RUNS=100` runs each case so often.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type Fleet } from '../../src/loss/fleet-under-test.ts';
import type { PlannedCall, SentCall } from '../../src/order/model/call.ts';
import { sequenceOf } from '../../src/order/generate-calls.ts';
import { orderFleetOf } from '../../src/order/order-oracle.ts';
import { runSequences, type Judgement } from '../../src/order/run-sequences.ts';

const pipelines = (path: string, body: object): SentCall => ({
  api: 'pipelines',
  path,
  body: body as never,
});
const person = (item: object): object => ({ type: 'person', ...item });
const batch = (...items: object[]): SentCall => ({
  api: 'v2',
  path: 'batch',
  body: { batch: items } as never,
});

/** In the order in which one sender sends them, to one intake and the other in turn. */
const inTurn = (...calls: SentCall[]): PlannedCall[] =>
  calls.map((call, index) => ({ call, sender: 0, intake: index % 2 === 0 ? 0 : 1 }));

const CASES: readonly (readonly [what: string, calls: readonly PlannedCall[]])[] = [
  [
    'two people and their merge in one batch',
    inTurn(
      batch(
        person({ action: 'identify', identifiers: { id: '~p1' }, attributes: { p: 1 } }),
        person({ action: 'identify', identifiers: { id: '~p2' }, attributes: { q: 2 } }),
        person({ action: 'merge', primary: { id: '~p1' }, secondary: { id: '~p2' } }),
      ),
    ),
  ],
  [
    'an event and an alias of its person in one batch',
    inTurn(
      pipelines('identify', { userId: '~p1' }),
      pipelines('identify', { userId: '~p2' }),
      pipelines('batch', {
        batch: [
          { type: 'track', userId: '~p2', event: 'before', messageId: '%1%' },
          { type: 'alias', userId: '~p1', previousId: '~p2' },
        ],
      }),
    ),
  ],
  [
    'traits of a visitor who then logs in',
    inTurn(
      pipelines('identify', { anonymousId: '~a1', traits: { plan: 'pro' } }),
      pipelines('identify', { userId: '~p1', anonymousId: '~a1', traits: { z: 1 } }),
    ),
  ],
  [
    'the group of a visitor who then logs in',
    inTurn(
      pipelines('group', { groupId: '~g1', anonymousId: '~a1', traits: { name: 'G' } }),
      pipelines('identify', { userId: '~p1', anonymousId: '~a1' }),
    ),
  ],
  [
    'the group of a visitor, which the person leaves before the login',
    inTurn(
      pipelines('identify', { userId: '~p1' }),
      pipelines('group', { groupId: '~g1', anonymousId: '~a1' }),
      pipelines('track', {
        userId: '~p1',
        event: 'Relationship Deleted',
        properties: { objectId: '~g1' },
      }),
      pipelines('identify', { userId: '~p1', anonymousId: '~a1' }),
    ),
  ],
  [
    'an alias of the anonymous id of another person',
    inTurn(
      pipelines('identify', { userId: '~p1', anonymousId: '~a1', traits: { p: 1 } }),
      pipelines('identify', { userId: '~p2', traits: { q: 2 } }),
      pipelines('alias', { userId: '~p2', previousId: '~a1', anonymousId: '~a1' }),
    ),
  ],
  [
    'the devices of a visitor who then logs in',
    inTurn(
      ...['~d1', '~d2'].map((token) =>
        pipelines('track', {
          anonymousId: '~a1',
          event: 'Device Created or Updated',
          context: { device: { token, type: 'ios' } },
        }),
      ),
      batch(
        person({
          action: 'delete_device',
          identifiers: { anonymous_id: '~a1' },
          device: { token: '~d2', platform: 'ios' },
        }),
      ),
      pipelines('identify', { userId: '~p1', anonymousId: '~a1' }),
    ),
  ],
  [
    'a deletion by email, then a new id with that email',
    inTurn(
      pipelines('identify', { userId: '~p1', traits: { email: '~p3@example.com' } }),
      { api: 'v1', method: 'DELETE', path: ['customers', '~p3@example.com'] },
      {
        api: 'v1',
        method: 'PUT',
        path: ['customers', '~p2'],
        body: { email: '~p3@example.com' },
      },
    ),
  ],
  [
    'an alias of a visitor',
    inTurn(
      pipelines('track', { anonymousId: '~a1', event: 'looked', messageId: '%1%' }),
      pipelines('identify', { anonymousId: '~a1', traits: { plan: 'pro' } }),
      pipelines('alias', { userId: '~p1', previousId: '~a1' }),
    ),
  ],
];

/** On Postgres fewer: a call costs the broker there five times as much. */
const COUNTS = {
  redis: { runs: 40, sequences: 170 },
  postgres: { runs: 6, sequences: 30 },
} as const;
const GIVEN_RUNS = process.env['ORDER_CASE_RUNS'];
const runsOf = (broker: keyof typeof COUNTS): number => Number(GIVEN_RUNS ?? COUNTS[broker].runs);

/** Seeds of the cases, beyond the seeds of random sequences. */
const FIRST_CASE = 1_000_000;

describe.each(['redis', 'postgres'] as const)('on %s', { timeout: 1_500_000 }, (broker) => {
  let fleet: Fleet;
  let judged: readonly Judgement[];
  // All side by side: the fleet is busy from the first call to the last.
  beforeAll(async () => {
    fleet = await startFleet(broker, orderFleetOf(false));
    const { sequences } = COUNTS[broker];
    const runs = runsOf(broker);
    judged = await runSequences(fleet, [
      ...CASES.flatMap(([, calls], index) =>
        Array.from({ length: runs }, (_, run) => ({ seed: FIRST_CASE + index, run, calls })),
      ),
      ...Array.from({ length: sequences }, (_, index) => ({
        seed: index + 1,
        run: 0,
        calls: sequenceOf(index + 1),
      })),
    ]);
  }, 1_500_000);
  afterAll(() => fleet?.close());

  /** With the lines of intakes about calls that went to the disk: a machine that stands still makes calls late. */
  const differencesOf = (found: readonly Judgement[]): string[] => {
    const different = found.flatMap(({ seed, run, differences }) =>
      differences.map(({ kind, words }) => `seed ${seed}, run ${run}: ${kind}: ${words}`),
    );
    if (different.length === 0) return [];
    const lines = (['intake-0', 'intake-1'] as const).flatMap((name) => fleet.lastLines(name));
    return [...different, ...lines.filter((line) => line.includes('disk buffer'))];
  };

  test.each(CASES.map(([what], index) => [what, FIRST_CASE + index] as const))(
    '%s, each many times',
    (_, seed) => {
      const found = judged.filter((each) => each.seed === seed);
      expect(found).toHaveLength(runsOf(broker));
      expect(differencesOf(found)).toEqual([]);
    },
  );

  test('random sequences end as their calls would one after another', () => {
    const found = judged.filter(({ seed }) => seed < FIRST_CASE);
    expect(found).toHaveLength(COUNTS[broker].sequences);
    expect(differencesOf(found)).toEqual([]);
  });
});
