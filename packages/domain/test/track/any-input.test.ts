/** Promises of every parser for every JSON value. */
import { isDeepStrictEqual } from 'node:util';
import { isError } from '@sluice/domain/operations/issue';
import { CallDraft, type ParseContext, type Parsed } from '@sluice/domain/parsing/parse';
import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { isStorableText } from '@sluice/domain/values/storable-text';
import { parsePublish } from '@sluice/domain/publish/parse-publish';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import {
  parseMetric,
  parsePushEvent,
  parseUnsubscribe,
} from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeleteDevice,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
} from '@sluice/domain/track/track-v1';
import { parseEntity, parseTrackBatch } from '@sluice/domain/track/track-v2';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CONTEXT } from '../support/parsing.ts';

type Parser = (body: unknown, path: string, context: ParseContext) => Parsed;

const CALLS: PipelinesCall[] = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'batch'];
const PARSERS: Record<string, Parser> = {
  ...Object.fromEntries(
    CALLS.map((call): [string, Parser] => [
      call,
      (body, _, context) => parsePipelines(call, body, context),
    ]),
  ),
  parseIdentify: (body, path, context) => parseIdentify(path, body, context),
  parsePersonEvent: (body, path, context) => parsePersonEvent(path, body, context),
  parseAddDevice: (body, path, context) => parseAddDevice(path, body, context),
  parseDeletePerson: (_, path, context) => parseDeletePerson(path, context),
  parseDeleteDevice: (_, path, context) => parseDeleteDevice('u1', path, context),
  parseAnonymousEvent: (body, _, context) => parseAnonymousEvent(body, context),
  parseMergePeople: (body, _, context) => parseMergePeople(body, context),
  parseMetric: (body, _, context) => parseMetric(body, context),
  parsePushEvent: (body, _, context) => parsePushEvent(body, context),
  parseUnsubscribe: (body, path, context) => parseUnsubscribe(path, body, context),
  parseFormSubmission: (body, path, context) => parseFormSubmission(path, body, context),
  parseSegmentChange: (body, path, context) => parseSegmentChange('add', path, path, body, context),
  parseEntity: (body, _, context) => parseEntity(body, context),
  parseTrackBatch: (body, _, context) => parseTrackBatch(body, context),
  parsePublish: (body, _, context) => parsePublish(body, context),
};

/** Texts of anything that UTF-16 may hold, half surrogates and U+0000 included. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc
    .array(fc.constantFrom(0, 0x61, 0xd800, 0xdc00, 0xfffd, 0x2028), { maxLength: 4 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    'u1',
    'ada@example.com',
    'cio_a3000001',
    '2024-05-01T10:20:30Z',
    '1714559999',
    '1',
    'true',
    '',
  ),
  fc.integer({ min: 0, max: 2_200 }).map((length) => 'ü'.repeat(length)),
);

/** Words that mean something to some parser, so that random bodies get past the first check. */
const word = fc.constantFrom(
  'identify', 'track', 'page', 'screen', 'group', 'alias', 'batch', 'person', 'object', 'delivery', 'event', 'delete',
  'suppress', 'add_relationships', 'delete_relationships', 'add_device', 'delete_device', 'merge', 'identify_anonymous',
  'viewed_content', 'ios', 'android', 'opened', 'User Deleted', 'Device Created or Updated', 'Application Opened',
  'Relationship Deleted', 'Object Deleted', 'Report Delivery Event', 'Report Content Event',
); // prettier-ignore
const key = fc.oneof(
  fc.constantFrom(
    'userId', 'anonymousId', 'event', 'properties', 'traits', 'groupId', 'previousId', 'messageId', 'timestamp', 'sentAt',
    'originalTimestamp', 'context', 'device', 'token', 'type', 'action', 'identifiers', 'id', 'email', 'phone', 'cio_id',
    'object_id', 'object_type_id', 'objectId', 'attributes', 'cio_relationships', 'svc_relationships', 'relationships',
    'relationship_attributes', 'name', 'data', 'anonymous_id', 'batch', 'primary', 'secondary', 'delivery_id', 'metric',
    'ids', 'unsubscribe', 'platform', 'created_at', 'createdAt', '_update', '_timestamp', 'deliveryId', 'recipient',
    'cio_subscription_preferences', 'event_type', 'payload', 'event_id', 'application', 'channel', 'messages', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length',
  ), // prettier-ignore
  text,
);
const leaf = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 3, arbitrary: word },
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.constantFrom(null, true, false, 0, 1e12, 1_714_559_999, 1e300),
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('tree')), { maxLength: 8 }).map(objectOf),
  ),
}));
/** Most bodies are objects. */
const body = fc.oneof(
  { weight: 1, arbitrary: tree },
  { weight: 9, arbitrary: fc.array(fc.tuple(key, tree), { maxLength: 10 }).map(objectOf) },
);

/** As `JSON.parse` makes them: every key an own one. */
function objectOf(entries: Array<[string, unknown]>): unknown {
  const object: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    Object.defineProperty(object, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

/** Every text of a value, keys too. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsOf(member)]);
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function expectSound(parsed: Parsed): void {
  const wire = JSON.stringify(parsed.operations);
  // -0 is the one number that JSON does not keep apart from another. Not vitest's equality: it asks an
  // object's own `constructor` key for its type.
  expect(isDeepStrictEqual(withoutNegativeZero(parsed.operations), JSON.parse(wire))).toBe(true);
  expect(
    [...textsOf(parsed.operations), ...textsOf(parsed.issues)].filter(
      (found) => !isStorableText(found),
    ),
  ).toEqual([]);
  for (const operation of parsed.operations) {
    expect(depthOf(operation)).toBeLessThanOrEqual(106);
    expect(shardOf(operation.environmentId, shardKeyOf(operation), 16)).toBeLessThan(16);
  }
  for (const issue of parsed.issues) {
    expect(issue.message.length).toBeLessThanOrEqual(500);
    expect((issue.field ?? '').length).toBeLessThanOrEqual(200);
    expect((issue.sample ?? '').length).toBeLessThanOrEqual(200);
  }
  const refused = new Set(parsed.issues.filter(isError).map((issue) => issue.batchIndex));
  if (refused.has(undefined)) expect(parsed.operations).toEqual([]);
}

function withoutNegativeZero(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  return objectOf(
    Object.entries(value).map(([name, member]) => [name, withoutNegativeZero(member)]),
  );
}

describe.each(Object.entries(PARSERS))('%s', (_, parse) => {
  test('takes any JSON value without throwing, and gives plain JSON that Postgres can store', () => {
    fc.assert(
      fc.property(body, text, fc.boolean(), (sent, path, phoneIdentifies) => {
        const before = JSON.stringify(sent);
        expectSound(parse(sent, path, { ...CONTEXT, phoneIdentifies }));
        expect(JSON.stringify(sent)).toBe(before);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['10,000 levels of arrays', '['.repeat(10_000) + ']'.repeat(10_000)],
    ['10,000 levels of objects', '{"traits":'.repeat(10_000) + 'null' + '}'.repeat(10_000)],
    ['a long list', `[${'0,'.repeat(20_000)}0]`],
    ['a number beyond a double', '1e999'],
    ['an own __proto__', '{"__proto__":{"userId":"u1","event":"e","name":"e"}}'],
  ])('survives %s, alone and in each place that it reads', (_name, json) => {
    const hostile: unknown = JSON.parse(json);
    expectSound(parse(hostile, 'u1', CONTEXT));
    for (const place of PLACES)
      expectSound(parse({ ...COMPLETE, [place]: hostile }, 'u1', CONTEXT));
    expectSound(
      parse(
        {
          ...COMPLETE,
          batch: [{ ...COMPLETE, traits: hostile, properties: hostile, attributes: hostile }],
        },
        'u1',
        CONTEXT,
      ),
    );
  });
});

/** A body in which every parser finds its fields. */
const COMPLETE = {
  userId: 'u1',
  type: 'person',
  action: 'identify',
  identifiers: { id: 'u1' },
  event: 'e',
  name: 'e',
  groupId: 'g',
  previousId: 'u0',
};
const PLACES = [
  'userId', 'anonymousId', 'event', 'name', 'properties', 'traits', 'groupId', 'previousId', 'messageId', 'timestamp',
  'sentAt', 'context', 'identifiers', 'attributes', 'cio_relationships', 'svc_relationships', 'data', 'device', 'batch',
  'primary', 'secondary', 'metadata', 'ids', 'id', 'type', 'action', 'delivery_id', 'metric', 'unsubscribe', 'plan',
]; // prettier-ignore

test('a call is refused with at most 20 issues, and its first error is one of them', () => {
  const entries = Array.from({ length: 5_000 }, () => 0);
  const many = parseEntity({ ...COMPLETE, cio_relationships: entries }, CONTEXT);
  expect(many.operations).toEqual([]);
  expect(many.issues).toHaveLength(20);
  const batch = parseTrackBatch(
    {
      batch: [
        { ...COMPLETE, cio_relationships: entries },
        { ...COMPLETE, action: 'x' },
      ],
    },
    CONTEXT,
  );
  expect(batch.issues.map((issue) => issue.batchIndex)).toEqual([
    ...Array.from({ length: 20 }, () => 0),
    1,
  ]);

  const draft = new CallDraft(CONTEXT, 'track');
  for (let count = 0; count < 30; count++) draft.warn('timestamp_invalid', 'timestamp', 'w');
  draft.refuse('invalid', 'x', 'e');
  expect(draft.issues.map((issue) => issue.code)).toEqual([
    ...Array.from({ length: 20 }, () => 'timestamp_invalid'),
    'invalid',
  ]);
});

test('no call changes the prototype of objects', () => {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>).userId).toBeUndefined();
});
