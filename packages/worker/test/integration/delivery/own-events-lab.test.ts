/**
 * The lab of hostile receivers, for lanes with a workspace's own events.
 *
 * The lanes hold tracked events and published messages beside reports. After any first behaviour of a receiver every
 * event arrives once, and events about one person arrive in their order.
 *
 * Over real sockets, with the real 4 s; waits between attempts pass on the clock of the test. `SLUICE_SEED` repeats a
 * run.
 */
import { randomInt } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/http/http-client.ts';
import { answer, startReceiver } from '../../support/receiver.ts';
import { eventInTurn } from '../support/event-in-turn.ts';
import { HOSTILE_ANSWERS, sendSteadily } from '../support/hostile-answers.ts';
import { createLaneWorld } from '../support/lane-world.ts';

const TIMEOUT_MS = 4_000;
/** Of requests that are answered at once. If a stall of the machine timed one out, its event would come twice. */
const AMPLE_TIMEOUT_MS = 20_000;
const CHOSEN_COUNT = 8;
const EVENT_COUNT = 18;
const PERSON_COUNT = 3;
/** Requests that are answered in the hostile way; the others get 200. */
const HOSTILE_COUNT = 2;

const seed = Number(process.env['SLUICE_SEED'] ?? randomInt(2 ** 31));
const random = seededRandom(seed);
const chosen = HOSTILE_ANSWERS.filter(({ failure }) => failure !== null)
  .map((each) => ({ each, place: random() }))
  .toSorted((one, other) => one.place - other.place)
  .slice(0, CHOSEN_COUNT)
  .map(({ each }) => each);

const closes: (() => unknown)[] = [];
let database: Database;
beforeAll(async () => void ({ database } = await createTestDatabase()));
afterAll(async () => {
  for (const close of closes) await close();
});

const numberOf = (request: string): number => Number(/"event_id":"e(\d+)"/.exec(request)?.[1]);

describe.concurrent(`reports, own events and published messages, seed ${seed}, to a receiver that`, () => {
  test.each(chosen)('$does, then answers', async ({ onRequest, failure, status }) => {
    const people = new Map(
      Array.from({ length: EVENT_COUNT }, (_, place): [number, number] => [
        place + 1,
        1 + Math.floor(random() * PERSON_COUNT),
      ]),
    );
    const taken: number[] = [];
    // Until the lane is healthy again it sends one request at a time.
    let hostileLeft = HOSTILE_COUNT;
    let startedAtMs = 0;
    const receiver = await startReceiver((request) => {
      if (hostileLeft > 0) {
        onRequest(request, startedAtMs);
        return;
      }
      taken.push(numberOf(request.text));
      request.socket.write(answer(200));
    });
    const client = createHttpClient({ timeoutMs: TIMEOUT_MS, allowPrivateAddresses: true });
    closes.push(
      () => client.close(),
      () => receiver.close(),
    );
    const world = await createLaneWorld(database, { endpoint: receiver.url });
    const events = [...people].map(([number, personId]) =>
      eventInTurn(world, number, world.nowMs, personId),
    );
    await database.transaction().execute((transaction) => appendDeliveries(transaction, events));

    for (;;) {
      const ended = await world.deliverAll({
        async post(request) {
          if (hostileLeft === 0) return client.post({ ...request, timeoutMs: AMPLE_TIMEOUT_MS });
          const send = () => {
            startedAtMs = performance.now();
            return client.post(request);
          };
          const outcome = await sendSteadily(send, { failure, status });
          hostileLeft--;
          return outcome;
        },
      });
      if (ended.outcome !== 'waiting') break;
      world.nowMs = ended.untilMs;
    }

    const sequences = Array.from({ length: EVENT_COUNT }, (_, place) => place + 1);
    const attempts = await Promise.all(sequences.map((each) => world.attempts(each)));
    expect(attempts.map((ofOne) => ofOne.at(-1)?.outcome)).toEqual(
      sequences.map(() => 'delivered'),
    );
    expect(attempts.flat()).toContainEqual(
      expect.objectContaining({ outcome: 'retrying', failure, status }),
    );
    expect(taken.toSorted((one, other) => one - other)).toEqual(sequences);
    for (let personId = 1; personId <= PERSON_COUNT; personId++) {
      // A message is about no person.
      const own = taken.filter((number) => number % 3 !== 2 && people.get(number) === personId);
      expect(own).toEqual(own.toSorted((one, other) => one - other));
    }
  });
});
