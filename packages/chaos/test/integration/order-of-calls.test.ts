/**
 * Calls take effect in the order in which they were acknowledged, whatever names they use: single cases that went wrong
 * before, many times each, and random sequences against the reference model. `npm run chaos -- --oracle order`
 * runs more of them, also with workers and brokers killed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type Fleet } from '../../src/loss/fleet-under-test.ts';
import type { Call, PlannedCall } from '../../src/order/call.ts';
import { sequenceOf } from '../../src/order/generate-calls.ts';
import { orderFleetOf } from '../../src/order/order-oracle.ts';
import { runSequences, type Run } from '../../src/order/run-sequences.ts';

const pipelines = (path: string, body: object): Call => ({
  api: 'pipelines',
  path,
  body: body as never,
});
const person = (item: object): object => ({ type: 'person', ...item });
const batch = (...items: object[]): Call => ({
  api: 'v2',
  path: 'batch',
  body: { batch: items } as never,
});

/** In the order in which one sender sends them, to one intake and the other in turn. */
const inTurn = (...calls: Call[]): PlannedCall[] =>
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
  redis: { runs: 25, sequences: 25 },
  postgres: { runs: 5, sequences: 8 },
} as const;

describe.each(['redis', 'postgres'] as const)('on %s', { timeout: 400_000 }, (broker) => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet(broker, orderFleetOf(false));
  }, 60_000);
  afterAll(() => fleet?.close());

  async function differences(runs: readonly Run[]): Promise<string[]> {
    const judged = await runSequences(fleet, runs);
    return judged.flatMap(({ seed, run, differences: all }) =>
      all.map(({ kind, words }) => `seed ${seed}, run ${run}: ${kind}: ${words}`),
    );
  }

  test('what went wrong before is right, each many times', async () => {
    const runs = CASES.flatMap(([, calls], index) =>
      Array.from({ length: COUNTS[broker].runs }, (_, run) => ({
        seed: 1_000_000 + index,
        run,
        calls,
      })),
    );
    expect(await differences(runs)).toEqual([]);
  });

  test('random sequences end as their calls would one after another', async () => {
    const runs = Array.from({ length: COUNTS[broker].sequences }, (_, index) => ({
      seed: index + 1,
      run: 0,
      calls: sequenceOf(index + 1),
    }));
    expect(await differences(runs)).toEqual([]);
  });
});
