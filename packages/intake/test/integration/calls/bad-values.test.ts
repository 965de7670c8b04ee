/**
 * One bad value costs its own item at most: every kind of it × every door that takes several calls at once, on real sockets.
 * A neighbour is somebody else's call.
 */
import { gzipSync } from 'node:zlib';
import { isError } from '@sluice/domain/operations/issue';
import type { Operation, RecordIssue, TrackEvent } from '@sluice/domain/operations/operation';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { openStream } from '../support/stream-client.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const WAIT = { timeout: 20_000 };

interface BadValue {
  readonly name: string;
  /** As it stands in the body, behind `"price":`. */
  readonly bytes: Buffer;
  /** The value with which the item is taken; absent if the item is not taken. */
  readonly taken?: unknown;
  /** Code of its issue; absent without an issue. */
  readonly issue?: string;
  /** Of the issue; if absent, it names the place of the value. */
  readonly field?: null;
  /** In strict mode; absent if it is taken there too. */
  readonly strict?: string;
}

const wrong = (...bytes: number[]) =>
  Buffer.concat([Buffer.from('"a'), Buffer.from(bytes), Buffer.from('b"')]);
const notFinite = (name: string): BadValue => ({
  name,
  bytes: Buffer.from(name),
  taken: null,
  issue: 'number_not_finite',
  strict: 'invalid_json',
});
const replaced = { issue: 'characters_replaced', strict: 'invalid' };
const unreadable = { issue: 'invalid_json', field: null, strict: 'invalid_json' } as const;
const VALUES: readonly BadValue[] = [
  notFinite('NaN'),
  notFinite('Infinity'),
  notFinite('-Infinity'),
  { name: 'text of NaN', bytes: Buffer.from('"NaN"'), taken: 'NaN' },
  {
    name: 'bytes of latin-1',
    bytes: wrong(0xfc),
    taken: 'a\ufffdb',
    ...replaced,
    strict: 'invalid_json',
  },
  {
    name: 'half a surrogate pair in UTF-8',
    bytes: wrong(0xed, 0xa0, 0x80),
    taken: 'a\ufffd\ufffd\ufffdb',
    ...replaced,
    strict: 'invalid_json',
  },
  {
    name: 'half a surrogate pair',
    bytes: Buffer.from('"a\\ud800b"'),
    taken: 'a\ufffdb',
    ...replaced,
  },
  { name: 'U+0000', bytes: Buffer.from('"a\\u0000b"'), taken: 'a\ufffdb', ...replaced },
  {
    name: 'a hundred and one levels',
    bytes: Buffer.from(`${'['.repeat(101)}${']'.repeat(101)}`),
    issue: 'invalid',
    strict: 'invalid',
  },
  {
    name: 'ten thousand levels',
    bytes: Buffer.from(`${'['.repeat(10_000)}${']'.repeat(10_000)}`),
    issue: 'invalid',
    strict: 'invalid',
  },
  { name: 'a number too large', bytes: Buffer.from('1e999'), issue: 'invalid', strict: 'invalid' },
  {
    name: 'the same key again',
    bytes: Buffer.from('1,"price":2'),
    taken: 2,
    issue: 'key_repeated',
    strict: 'invalid_json',
  },
  {
    name: 'the same key again, once with an escape',
    bytes: Buffer.from('1,"\\u0070rice":2'),
    taken: 2,
    issue: 'key_repeated',
    strict: 'invalid_json',
  },
  { name: 'a word of Python', bytes: Buffer.from('None'), ...unreadable },
  { name: 'a comma too many', bytes: Buffer.from('1,'), ...unreadable },
  { name: 'a line break in a text', bytes: Buffer.from('"a\rb"'), ...unreadable },
];

interface Door {
  readonly name: string;
  readonly path: string;
  readonly authorization: string;
  readonly item: (person: string, value: string) => string;
  readonly field: string;
  readonly strictStatus: number;
  readonly encoding?: 'gzip';
}

const pipelinesItem = (person: string, value: string): string =>
  `{"type":"track","userId":"${person}","event":"e","properties":{"k":1,"price":${value}}}`;
const BATCH: Door = {
  name: 'a batch',
  path: '/v1/batch',
  authorization: PIPELINES_AUTHORIZATION,
  item: pipelinesItem,
  field: 'properties.price',
  strictStatus: 400,
};
const DOORS: readonly Door[] = [
  BATCH,
  { ...BATCH, name: 'a compressed batch', encoding: 'gzip' },
  {
    name: 'a batch of v2',
    path: '/v2/batch',
    authorization: TRACK_AUTHORIZATION,
    item: (person, value) =>
      `{"type":"person","action":"event","identifiers":{"id":"${person}"},"name":"e","attributes":{"k":1,"price":${value}}}`,
    field: 'attributes.price',
    strictStatus: 207,
  },
];

/** `latin1` keeps every byte. */
const textOf = (bytes: Buffer): string => bytes.toString('latin1');

let sent = 0;
/** The people of a body of three items, of whom the second has the value. */
const newPeople = (): [string, string, string] => {
  sent++;
  return [`a${sent}`, `b${sent}`, `c${sent}`];
};

const eventsOf = (person: string): TrackEvent[] =>
  intake.operations.filter(
    (operation): operation is TrackEvent =>
      operation.type === 'event.track' && operation.person?.value === person,
  );
const isIssue = (operation: Operation): operation is RecordIssue =>
  operation.type === 'issue.record';

/** People of both shards. */
const LAST_PEOPLE = Array.from({ length: 16 }, (_, n) => `last-${n}`);

/**
 * All that was taken before has passed through the broker. A test waits for its events, and its issues may be on another
 * shard: they would be among the issues of the next test.
 */
async function untilAllPassed(): Promise<void> {
  const event = `last ${++sent}`;
  const batch = LAST_PEOPLE.map((userId) => ({ type: 'track', userId, event }));
  const answer = await fetch(`${intake.url}/v1/batch`, {
    method: 'POST',
    headers: { Authorization: PIPELINES_AUTHORIZATION },
    body: JSON.stringify({ batch }),
  });
  expect(answer.status).toBe(200);
  await vi.waitFor(() => {
    for (const person of LAST_PEOPLE)
      expect(eventsOf(person).map(({ name }) => name)).toContain(event);
  }, WAIT);
}

/** Commit batches of several shards come in any order. */
async function expectTaken([before, bad, after]: readonly string[], { taken }: BadValue) {
  await vi.waitFor(() => {
    for (const neighbour of [before, after])
      expect(eventsOf(neighbour as string)).toMatchObject([{ data: { k: 1, price: 1 } }]);
    if (taken !== undefined) expect(eventsOf(bad as string)).toHaveLength(1);
  }, WAIT);
  expect(eventsOf(bad as string).map(({ data }) => data)).toEqual(
    taken === undefined ? [] : [{ k: 1, price: taken }],
  );
}

/** The path of the value, or into it. */
const placeIn = (value: BadValue, field: string): unknown =>
  value.field === null ? null : expect.stringMatching(new RegExp(`^${field}(\\.0)*$`));

describe.each(DOORS)('$name', ({ path, authorization, item, field, strictStatus, encoding }) => {
  const send = (people: readonly string[], bytes: Buffer, isStrict: boolean) => {
    const items = people.map((person, index) => item(person, index === 1 ? textOf(bytes) : '1'));
    const body = Buffer.from(`{"batch":[${items.join(',')}]}`, 'latin1');
    return fetch(`${intake.url}${path}`, {
      method: 'POST',
      headers: {
        Authorization: authorization,
        ...(isStrict && { 'X-Strict-Mode': '1' }),
        ...(encoding && { 'Content-Encoding': encoding }),
      },
      body: encoding ? gzipSync(body) : body,
    });
  };

  test.each(VALUES)('$name', async (value) => {
    const people = newPeople();
    await untilAllPassed();
    const recordedBefore = intake.operations.filter(isIssue).length;
    const answer = await send(people, value.bytes, false);
    const isRefused = value.taken === undefined;
    const isTrack = path.startsWith('/v2');
    expect(answer.status).toBe(isRefused && isTrack ? 207 : 200);
    await expectTaken(people, value);
    const recorded = () => intake.operations.filter(isIssue).slice(recordedBefore);
    const told = { code: value.issue, field: placeIn(value, field), batchIndex: 1 };
    if (value.issue === undefined) expect(recorded()).toEqual([]);
    else if (isRefused && isTrack)
      expect(await answer.json()).toMatchObject({
        errors: [{ batch_index: 1, reason: value.issue, field: told.field }],
      });
    else
      await vi.waitFor(() => expect(recorded()).toMatchObject([{ issue: told, count: 1 }]), WAIT);
  });

  test.each(VALUES.filter(({ strict }) => strict !== undefined))(
    '$name in strict mode is refused with the item',
    async (value) => {
      const answer = await send(newPeople(), value.bytes, true);
      expect(answer.status).toBe(strictStatus);
      expect(await answer.json()).toMatchObject({
        errors: [{ batch_index: 1, reason: value.strict, field: placeIn(value, field) }],
      });
    },
  );

  test('in an identifier costs that item too, and never becomes the identifier of another person', async () => {
    for (const bad of ['\\ud800', '\xfc']) {
      const people = newPeople();
      const [before, , after] = people;
      const answer = await send([before, bad, after], Buffer.from('1'), false);
      expect(answer.status).toBe(path.startsWith('/v2') ? 207 : 200);
      await expectTaken(people, { name: '', bytes: Buffer.alloc(0) });
    }
    expect(
      intake.operations.filter((operation) => operation.type === 'event.track'),
    ).not.toContainEqual(
      expect.objectContaining({ person: expect.objectContaining({ value: '\ufffd' }) }),
    );
  });
});

describe('a stream', () => {
  const lineOf = (person: string, bytes: Buffer): Buffer =>
    Buffer.from(`${pipelinesItem(person, textOf(bytes))}\n`, 'latin1');

  test('takes each line by itself, and reports each bad line by number', async () => {
    const stream = openStream(intake.url);
    const people = VALUES.map(() => newPeople());
    for (const [index, { bytes }] of VALUES.entries()) {
      const [before, bad, after] = people[index] as [string, string, string];
      await stream.write(lineOf(before, Buffer.from('1')));
      await stream.write(lineOf(bad, bytes));
      await stream.write(lineOf(after, Buffer.from('1')));
    }
    expect(await stream.end()).toMatchObject({ line: 3 * VALUES.length, end: 'complete' });
    for (const [index, value] of VALUES.entries())
      await expectTaken(people[index] as [string, string, string], value);
    const issues = stream.answers.flatMap(({ issues: told = [] }) => told);
    expect(issues.map(({ line, code }) => `${line} ${code}`)).toEqual(
      VALUES.flatMap(({ issue }, index) =>
        issue === undefined ? [] : [`${3 * index + 2} ${issue}`],
      ),
    );
  });
});

describe('a single call', () => {
  const POSTS = [
    ['/v1/track', PIPELINES_AUTHORIZATION, '"userId":"PERSON","event":"e","properties"'],
    ['/api/v1/customers/PERSON/events', TRACK_AUTHORIZATION, '"name":"e","data"'],
  ] as const;

  test.each(POSTS)(
    '%s takes NaN as null; strict mode refuses it and names its field',
    async (path, authorization, head) => {
      const [person] = newPeople();
      const send = (strict: '0' | '1') =>
        fetch(`${intake.url}${path.replace('PERSON', person)}`, {
          method: 'POST',
          headers: { Authorization: authorization, 'X-Strict-Mode': strict },
          body: `{${head.replace('PERSON', person)}:{"price":NaN,"k":1}}`,
        });
      expect((await send('0')).status).toBe(200);
      await vi.waitFor(
        () => expect(eventsOf(person)).toMatchObject([{ data: { price: null, k: 1 } }]),
        WAIT,
      );
      const strict = await send('1');
      expect(strict.status).toBe(400);
      expect(await strict.json()).toMatchObject({
        code: 'invalid_json',
        errors: [{ field: expect.stringMatching(/^(data|properties)\.price$/) }],
      });
    },
  );

  test.each(POSTS)(
    '%s with a key twice takes the last; strict mode refuses it',
    async (path, authorization, head) => {
      const [person] = newPeople();
      const send = (strict: '0' | '1', data: string) =>
        fetch(`${intake.url}${path.replace('PERSON', person)}`, {
          method: 'POST',
          headers: { Authorization: authorization, 'X-Strict-Mode': strict },
          body: `{${head.replace('PERSON', person)}:${data}}`,
        });
      const strict = await send('1', '{"a":[{"k":1},{"k":1,"n":"k","k":2}]}');
      expect(strict.status).toBe(400);
      expect(await strict.json()).toMatchObject({
        code: 'invalid_json',
        errors: [{ field: expect.stringMatching(/^(data|properties)\.a\.1\.k$/) }],
      });
      expect((await send('1', '{"a":{"k":1},"b":{"k":1,"a":"k"}}')).status).toBe(200);
      expect((await send('0', '{"k":1,"k":2}')).status).toBe(200);
      await vi.waitFor(
        () => expect(eventsOf(person).map(({ data }) => data)).toContainEqual({ k: 2 }),
        WAIT,
      );
      expect(eventsOf(person)).toHaveLength(2);
    },
  );

  test('that is no JSON at all is refused as before', async () => {
    const answer = await fetch(`${intake.url}/v1/track`, {
      method: 'POST',
      headers: { Authorization: PIPELINES_AUTHORIZATION, 'X-Strict-Mode': '1' },
      body: '{"userId":"u","event":"e",}',
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: 'invalid_json' });
  });
});

test('the issue of a bad value is an error only if the item is lost', () => {
  for (const operation of intake.operations.filter(isIssue))
    expect(isError(operation.issue)).toBe(
      !['number_not_finite', 'characters_replaced', 'key_repeated'].includes(operation.issue.code),
    );
});
