/**
 * The fast path beside the slow one: both read every call alike that the fast path does not decline.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { unpackOperation, type QueuedOperation } from '@sluice/domain/operations/packed-event';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { expect } from 'vitest';
import { routes, type Call } from '../../src/calls/calls.ts';
import { readBody } from '../../src/calls/read-body.ts';
import { FastTrackParser, type ParsedOperations } from '../../src/groups/fast-track-parser.ts';

export const AT_MS = Date.UTC(2026, 10, 20);
const SHARD_COUNT = 7;
export const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const parser = new FastTrackParser();

function callNamed(name: string): Call {
  const route = routes.find(({ call }) => call.name === name);
  if (!route) throw new Error(`no call ${name}`);
  return route.call;
}
const calls = { track: callNamed('pipelines.track'), batch: callNamed('pipelines.batch') };

export const bytesOf = (text: string) => new TextEncoder().encode(text);

/** As Postgres gets it: -0 becomes 0. */
const asStored = (operation: Operation) => JSON.parse(JSON.stringify(operation)) as Operation;

export const queuedAt = (fastParsed: ParsedOperations, index: number): QueuedOperation =>
  JSON.parse(
    fastParsed.memory.toString('utf8', fastParsed.startOf(index), fastParsed.endOf(index)),
  ) as QueuedOperation;

export const eventIdOf = (operation: Operation): string =>
  'eventId' in operation ? operation.eventId : '';

/** Result of the fast path; undefined if it declines. */
function fastParse(bytes: Uint8Array, kind: 'track' | 'batch', environmentId: number) {
  const fastParsed = parser.parse(bytes, kind === 'batch', environmentId, AT_MS);
  if (fastParsed === undefined) return undefined;
  return Array.from({ length: fastParsed.count }, (_, index) => ({
    shard: fastParsed.keyHashOf(index) % SHARD_COUNT,
    operation: asStored(unpackOperation(queuedAt(fastParsed, index))),
  }));
}

/** Result of the slow path, as the worker gets it. */
function parse(bytes: Uint8Array, kind: 'track' | 'batch', environmentId: number) {
  const call = calls[kind];
  const body = readBody(bytes, call.itemsKey);
  if (body.outcome !== 'read') return undefined;
  const { operations, issues } = call.parse(
    body.value,
    {
      environmentId,
      receivedAtMs: AT_MS,
      newId: () => 'made',
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

/** True if it was not declined, and then both gave the same. */
export function isParsedAlike(
  bytes: Uint8Array,
  kind: 'track' | 'batch' = 'track',
  environmentId = 1,
): boolean {
  const fastParsed = fastParse(bytes, kind, environmentId);
  if (fastParsed === undefined) return false;
  const parsed = parse(bytes, kind, environmentId);
  const made = new Set<string>();
  const operations = fastParsed.map(({ shard, operation }) => {
    expect(shard).toBe(shardOf(environmentId, shardKeyOf(operation), SHARD_COUNT));
    if (operation.type !== 'event.track' || !ULID.test(operation.eventId)) return operation;
    made.add(operation.eventId);
    return { ...operation, eventId: 'made' };
  });
  expect({ operations, issues: [] }).toEqual(parsed);
  expect(made.size).toBe(
    operations.filter((each) => 'eventId' in each && each.eventId === 'made').length,
  );
  return true;
}

export const plain = {
  userId: 'user-1',
  event: 'Order Placed',
  properties: { plan: 'pro', amount: 42.5, items: ['a', { b: null }], isNew: true },
  timestamp: '2026-11-20T10:00:00.123Z',
  context: { library: { name: 'x', version: '1' }, ip: '1.2.3.4' },
};
export const text = (changes: Record<string, unknown> = {}) =>
  JSON.stringify({ ...plain, ...changes });
