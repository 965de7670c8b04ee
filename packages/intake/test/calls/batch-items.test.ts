/**
 * A large batch that is read item by item.
 *
 * It gives the same result as when it is read whole.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import type { ParseContext } from '@sluice/domain/parsing/parse';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { readBatchInTurns } from '../../src/calls/batch-items.ts';
import { bodyIssue } from '../../src/calls/call-issues.ts';
import { routes, type Call } from '../../src/calls/calls.ts';
import { readBody, type Body } from '../../src/calls/read-body.ts';
import { mayRepeatKey } from '../../src/calls/repeated-key.ts';
import { BatchSplitter } from '../../src/calls/split-batch.ts';

const callAt = (path: string) => routes.find(({ pattern }) => pattern === path)?.call as Call;
const PIPELINES = callAt('/v1/batch');
const TRACK = callAt('/v2/batch');
const KB = 1_024;

interface Found {
  readonly operations: readonly Operation[];
  readonly issues: readonly Issue[];
}

function contextOf(call: Call, body: Extract<Body, { outcome: 'read' }>): ParseContext {
  let count = 0;
  return {
    environmentId: 1,
    receivedAtMs: 1_750_000_000_000,
    newId: () => `id-${count++}`,
    phoneIdentifies: false,
    isStrict: false,
    source: call.name,
    bodySizeBytes: body.sizeBytes,
    hasEscapes: body.hasEscapes,
    ...(body.faults && { faults: body.faults }),
  };
}

const refused = (body: Exclude<Body, { outcome: 'read' }>): Found => ({
  operations: [],
  issues: [bodyIssue(body, 1)],
});

function readWhole(call: Call, bytes: Uint8Array): Found {
  const body = readBody(bytes, 'batch', mayRepeatKey);
  return body.outcome === 'read'
    ? call.parse(body.value, contextOf(call, body), [])
    : refused(body);
}

const always = { isOver: () => true };
/** With a turn for each item by default. */
async function readInTurns(
  call: Call,
  bytes: Uint8Array,
  nextTurn = () => Promise.resolve(always),
): Promise<Found> {
  const body = (await readBatchInTurns(bytes, always, nextTurn, mayRepeatKey)) as Body;
  if (body.outcome !== 'read') return refused(body);
  const operations: Operation[] = [];
  if (body.inTurns === undefined) return call.parse(body.value, contextOf(call, body), []);
  const steps = call.parseInSteps?.(body.value, body.inTurns.items, contextOf(call, body));
  for (;;) {
    const step = steps?.next();
    if (step === undefined || step.done) return { operations, issues: step?.value ?? [] };
    operations.push(...step.value);
  }
}

/** Without the place of a fault, which is in bytes here and in characters there. */
const comparable = ({ operations, issues }: Found) => ({
  operations,
  issues: issues.map(({ code, field, batchIndex, callCount, message }) => ({
    code,
    field,
    batchIndex,
    callCount,
    ...(code !== 'invalid_json' && { message }),
  })),
});

const person = fc.constantFrom('ann', 'bo', 'Zoë', '😀', '');
const calls: fc.Arbitrary<string> = fc.oneof(
  fc
    .record({
      type: fc.constantFrom('track', 'page', 'x'),
      userId: person,
      event: fc.string(),
      properties: fc.object(),
    })
    .map((call) => JSON.stringify(call)),
  fc
    .record({
      type: fc.constant('person'),
      action: fc.constantFrom('event', 'identify', 'delete'),
      identifiers: fc.record({ id: person }),
      name: fc.string(),
      attributes: fc.object(),
    })
    .map((call) => JSON.stringify(call)),
  fc.json(),
);
/** Texts that are no JSON, some of them only nearly so. */
const faulty = fc.constantFrom(
  '',
  ' ',
  'NaN',
  '{"type":"track","userId":"a","event":"e","properties":{"a":NaN}}',
  '{"type":"track","userId":"a","event":"\\ud800"}',
  '{"type":"track","userId":"a","event":"e","properties":{"a":"\\u0000"}}',
  '{"a":1',
  '{"a":]}',
  '"a\\"b',
  '{"a":1}}',
  '[1,2',
  '{"a":"x}',
  'nul',
  '{"type":"track" "userId":"a"}',
  '\t{"type":"alias"}\n',
);
const lists = fc
  .array(fc.oneof({ weight: 4, arbitrary: calls }, { weight: 1, arbitrary: faulty }), {
    maxLength: 6,
  })
  .chain((items) =>
    fc.constantFrom(',', ' , ', '\n,\n').map((separator) => `[${items.join(separator)}]`),
  );
const members = fc.oneof(
  fc.constantFrom(
    '"sentAt":"2026-01-01T00:00:00Z"',
    '"context":{"batch":[1,{"a":2}]}',
    '"x":"]}"',
    '"b\\u0061tch":[]',
  ),
  fc.constantFrom('"n":NaN', '"batch":null', '"batch":{}', '"y":[', '1'),
  fc.json().map((value) => `"any":${value}`),
);
const bodies = fc
  .record({
    list: lists,
    before: fc.array(members, { maxLength: 2 }),
    after: fc.array(members, { maxLength: 2 }),
    space: fc.constantFrom('', ' ', '\r\n\t'),
    end: fc.constantFrom('', '', '', ' ', '}', 'x', '{}'),
  })
  .map(({ list, before, after, space, end }) => {
    const all = [...before, `"batch"${space}:${space}${list}`, ...after];
    return Buffer.from(`${space}{${space}${all.join(`${space},`)}${space}}${end}`);
  });
/** Some with a byte that is no UTF-8, cut off, or with a byte order mark. */
const bytesOf = fc
  .tuple(bodies, fc.constantFrom('whole', 'whole', 'cut', 'wrong', 'mark'), fc.nat())
  .map(([body, kind, at]) => {
    const place = 1 + (at % body.length);
    if (kind === 'cut') return body.subarray(0, place);
    if (kind === 'mark') return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body]);
    if (kind === 'wrong')
      return Buffer.concat([body.subarray(0, place), Buffer.from([0xe9]), body.subarray(place)]);
    return body;
  });

describe.each([
  ['Pipelines', PIPELINES],
  ['Track', TRACK],
])('%s', (_, call) => {
  test('any body gives the same operations and issues as when it is read whole', async () => {
    await fc.assert(
      fc.asyncProperty(bytesOf, async (bytes) => {
        expect(comparable(await readInTurns(call, bytes))).toEqual(
          comparable(readWhole(call, bytes)),
        );
      }),
      { numRuns: 2_000 },
    );
  });
});

const item = (more: string) => `{"type":"track","userId":"a","event":"e","properties":{${more}}}`;
const bodyOf = (items: readonly string[]) => Buffer.from(`{"batch":[${items.join(',')}]}`);

/** @returns the splitter, behind the last of the bytes. */
function splitterOf(bytes: Uint8Array): BatchSplitter {
  const splitter = new BatchSplitter(bytes);
  while (!splitter.advance(KB));
  return splitter;
}

test('the size of a batch without its items is known before its parts are put together', () => {
  fc.assert(
    fc.property(bodies, (bytes) => {
      const splitter = splitterOf(bytes);
      fc.pre(splitter.isWhole);
      expect(splitter.envelopeSizeBytes).toBe(splitter.envelope().length);
    }),
  );
});

// 4 KB of gzip, which took a tenth of a second in which no call was answered.
test('the parts of a batch of 380,000 lists are not put together', async () => {
  const joined = vi.spyOn(BatchSplitter.prototype, 'envelope');
  const body = Buffer.from(`{${'"batch":[],'.repeat(380_000)}"a":1}`);
  const found = await readBatchInTurns(body, always, () => Promise.resolve(always));
  expect(found).toEqual({ outcome: 'too-large', callCount: 0, besideItemsMax: 64 * KB });
  expect(joined).not.toHaveBeenCalled();
  joined.mockRestore();
});

test('an item that is too large costs itself alone, and is not read', async () => {
  const large = item(`"k":"${'x'.repeat(64 * KB)}"`);
  const found = await readInTurns(PIPELINES, bodyOf([item(''), large, item('')]));
  expect(found.operations).toHaveLength(2);
  expect(found.issues).toMatchObject([{ code: 'too_large', batchIndex: 1 }]);
});

test('an item is measured without its white space, and an escape as one byte', async () => {
  const spaced = item(`"k":${' '.repeat(100 * KB)}1`);
  const escaped = item(`"k":"${'\\u00e9'.repeat(30 * KB)}"`);
  const found = await readInTurns(PIPELINES, bodyOf([spaced, escaped]));
  expect(found.issues).toEqual([]);
  expect(found.operations).toHaveLength(2);
});

test('a batch with over 64 KB beside its items is too large, and the issue counts its calls', async () => {
  const body = Buffer.from(`{"context":"${'x'.repeat(64 * KB)}","batch":[${item('')},{}]}`);
  expect((await readInTurns(PIPELINES, body)).issues).toMatchObject([
    {
      code: 'too_large',
      callCount: 2,
      message:
        'the request body without its items is larger than 64 KB; the 2 calls in it are lost. Send them again in smaller bodies',
    },
  ]);
});

test('a million items are refused by their number', async () => {
  const { issues } = await readInTurns(PIPELINES, bodyOf(Array<string>(1_000_000).fill('{}')));
  expect(issues).toMatchObject([{ code: 'too_large', field: 'batch', callCount: 1_000_000 }]);
});

test('a sender who leaves ends the reading', async () => {
  const bytes = bodyOf(Array<string>(2_000).fill(item('')));
  expect(await readBatchInTurns(bytes, always, () => Promise.resolve(undefined))).toBeUndefined();
});
