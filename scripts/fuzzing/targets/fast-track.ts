/**
 * The WebAssembly parser of simple calls beside the plain one: both read each call alike that the first does not
 * decline. The ways through the WebAssembly guide the inputs (`instrumented-assembly.ts`).
 */
import { deepEqual, equal } from 'node:assert/strict';
import { unpackOperation, type QueuedOperation } from '@sluice/domain/operations/packed-event';
import type { Operation } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { routes } from '@sluice/intake/calls/calls';
import { readBody } from '@sluice/intake/calls/read-body';
import { FastTrackParser } from '@sluice/intake/groups/fast-track-parser';
import type { FuzzTarget } from '../fuzz-target.ts';
import { compileInstrumented } from '../instrumented-assembly.ts';

const AT_MS = Date.UTC(2026, 10, 20);
const ENVIRONMENT_ID = 3;
const SHARD_COUNT = 7;
/** Of an id that intake made. */
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const MADE = 'made';

const parser = new FastTrackParser();
/** The same source with counters, which show the way of an input. */
const assembly = await compileInstrumented();
const guide = new FastTrackParser(assembly.module);
const CALL = {
  userId: 'user-1',
  event: 'Order Placed',
  properties: { plan: 'pro', amount: 42.5, items: ['a', { b: null }] },
  timestamp: '2026-11-20T10:00:00.123Z',
  messageId: 'm-1',
};
/** As it comes to Postgres. */
const asStored = (operation: Operation): Operation =>
  JSON.parse(JSON.stringify(operation)) as Operation;

function read(bytes: Uint8Array, isBatch: boolean) {
  const call = routes.find(
    ({ call: each }) => each.name === (isBatch ? 'pipelines.batch' : 'pipelines.track'),
  )?.call;
  if (!call) throw new Error('there is no such call');
  const body = readBody(bytes, call.itemsKey);
  if (body.outcome !== 'read') return { operations: [], issues: [body.outcome] };
  const { operations, issues } = call.parse(
    body.value,
    {
      environmentId: ENVIRONMENT_ID,
      receivedAtMs: AT_MS,
      newId: () => MADE,
      phoneIdentifies: false,
      source: call.name,
      bodySizeBytes: body.sizeBytes,
      hasEscapes: body.hasEscapes,
      ...(body.faults && { faults: body.faults }),
    },
    [],
  );
  return { operations: operations.map(asStored), issues };
}

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  counts: assembly.countersIn(guide.memory),
  seeds: [
    JSON.stringify(CALL),
    JSON.stringify({
      ...CALL,
      messageId: undefined,
      anonymousId: 'a-1',
      sentAt: '2026-11-20T00:00:00.500Z',
    }),
    JSON.stringify({
      batch: [
        { ...CALL, type: 'track' },
        { ...CALL, type: 'track', userId: 'a@example.com' },
      ],
    }),
    '{"userId":"u","event":"e","properties":{"größe":"€ 𝄞","n":-0,"big":1e400,"t":"a\\nb"}}',
  ],
  words: [
    '"userId":',
    '"event":',
    '"properties":',
    '"timestamp":',
    '"anonymousId":',
    '"type":"track"',
    '{"batch":[',
    ']',
    '{',
    '}',
    ',',
    ':',
    '"',
    '\\u0000',
    '\\ud800',
    '\\"',
    '1e999',
    '-0',
    'null',
    'true',
    '[[',
    '"__proto__":',
    '2026-02-30T00:00:00Z',
    '\xc3\xa9',
    '\xed\xa0\x80',
    '\xef\xbb\xbf',
  ],
  run(input) {
    const isBatch = input.includes('"batch"');
    const bytes = new Uint8Array(input);
    const guided = guide.parse(bytes, isBatch, ENVIRONMENT_ID, AT_MS);
    const fast = parser.parse(bytes, isBatch, ENVIRONMENT_ID, AT_MS);
    equal(fast?.count, guided?.count);
    if (fast === undefined) return;
    const operations = Array.from({ length: fast.count }, (_, index) => {
      const text = fast.memory.toString('utf8', fast.startOf(index), fast.endOf(index));
      const operation = asStored(unpackOperation(JSON.parse(text) as QueuedOperation));
      equal(
        fast.keyHashOf(index) % SHARD_COUNT,
        shardOf(ENVIRONMENT_ID, shardKeyOf(operation), SHARD_COUNT),
      );
      if (operation.type !== 'event.track' || !ULID.test(operation.eventId)) return operation;
      return { ...operation, eventId: MADE };
    });
    deepEqual({ operations, issues: [] }, read(bytes, isBatch));
  },
};
