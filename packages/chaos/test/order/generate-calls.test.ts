/** Sequences: the same from the same seed, within their bounds, and with names of their own. */
import { expect, test } from 'vitest';
import { nameCalls, namesIn, prefixOf } from '../../src/order/model/call.ts';
import { LATE_INTAKE, sequenceOf } from '../../src/order/generate-calls.ts';
import { shrink, withoutParts } from '../../src/order/shrink.ts';

const SEEDS = Array.from({ length: 50 }, (_, index) => index + 1);

test('a seed makes the same sequence each time', () => {
  for (const seed of SEEDS) expect(sequenceOf(seed)).toEqual(sequenceOf(seed));
  expect(sequenceOf(1)).not.toEqual(sequenceOf(2));
});

test('a sequence has 5 to 200 calls of 1 to 4 senders through 2 intakes', () => {
  const sequences = SEEDS.map((seed) => sequenceOf(seed));
  for (const calls of sequences) {
    expect(calls.length).toBeGreaterThanOrEqual(5);
    expect(calls.length).toBeLessThanOrEqual(200);
  }
  const all = sequences.flat();
  expect(new Set(all.map(({ sender }) => sender))).toEqual(new Set([0, 1, 2, 3]));
  expect(new Set(all.map(({ intake }) => intake))).toEqual(new Set([0, 1]));
  expect(new Set(all.map(({ call }) => call.api))).toEqual(
    new Set(['pipelines', 'v1', 'v2', 'stream', 'import']),
  );
});

test('sequences contain calls of visitors, several relationships, and repeated event ids', () => {
  const text = SEEDS.map((seed) => JSON.stringify(sequenceOf(seed))).join(' ');
  for (const part of [
    /"identifiers":\{"anonymous_id":"~a\d"\},"device"/,
    /"anonymousId":"~a\d","event":"Device Created or Updated"/,
    /"userId":"~p\d","anonymousId":"~a\d","groupId"/,
    /"anonymousId":"~a\d","traits":\{[^}]*"_timestamp"/,
    /"objectId":"~g\d","relationshipAttributes"/,
    /"svc_subscription_preferences":\{/,
    /"identifiers":\{"anonymous_id":"~a\d"\},"attributes"/,
    /"userId":null,"anonymousId":"~a\d"/,
    /"type":"identify","traits":\{[^}]*"email":"~p\d@/,
    /"identifiers":\{"svc_id":"\^\d\^"\},(?:"svc_relationships":\[.{1,120}\],)?"attributes":\{[^}]*"id":(?:null|"")/,
    /"svc_relationships":\[[^\]]*\},\{"identifiers"/,
    /(?<id>%90000000\d%).*\k<id>/,
    /"anonymous(?:Id|_id)":"~A\d"/,
    /"previousId":"~A\d@X.example"/,
    /"(?:userId|id)":"=3="/,
    /"~p\d "/,
  ])
    expect(text).toMatch(part);
});

// Nearly all had both once, so an identify hardly ever made a person.
test('few calls have `_update` or `_timestamp`', () => {
  const text = SEEDS.map((seed) => JSON.stringify(sequenceOf(seed))).join(' ');
  const countOf = (part: RegExp) => text.match(part)?.length ?? 0;
  const callCount = countOf(/"created_at"|"(?:traits|attributes)":\{"(?:plan|city|step)"/g);
  expect(countOf(/"_update":true/g)).toBeLessThan(callCount / 4);
  expect(countOf(/"_timestamp"/g)).toBeLessThan(callCount / 3);
});

test.each([1, 113_000_357, 2 ** 40])(
  'names of seed %i are as long as their kind allows',
  (seed) => {
    const call = {
      api: 'pipelines',
      item: { userId: '~p1', messageId: '%7%', traits: { phone: '#1#' } },
    } as never;
    const [planned] = nameCalls([{ call, sender: 0, intake: 0 }], seed, 3);
    const { item } = (planned as unknown as { call: { item: Record<string, unknown> } }).call;
    expect(item['messageId']).toMatch(/^[0-9A-Z]{26}$/);
    // E.164: 15 digits at most. Nine is no country code, which the API does not look at.
    expect(item['traits']).toEqual({ phone: expect.stringMatching(/^\+9\d{13}$/) });
    expect(namesIn([planned!], prefixOf(seed, 3))).toHaveLength(2);
  },
);

test('two runs of a seed share no name and no event id', () => {
  const texts = [0, 1].map((run) => JSON.stringify(nameCalls(sequenceOf(3), 3, run)));
  expect(texts[0]).not.toContain('~');
  expect(texts[0]).not.toContain('%');
  const wordsOf = (text: string) => new Set(text.match(/"(?:s3r|01H)[^"]*"/g));
  const other = wordsOf(texts[1] as string);
  expect([...wordsOf(texts[0] as string)].filter((word) => other.has(word))).toEqual([]);
});

test('an id of digits is a number in a member, a text in a path, and one name', () => {
  const put = { api: 'v1', method: 'PUT', path: ['customers', '=3= '] } as const;
  const track = { api: 'pipelines', path: 'track', body: { userId: '=3=' } } as const;
  const planned = [put, track].map((call) => ({ call, sender: 0, intake: 0 }) as const);
  const calls = nameCalls(planned, 7, 1);
  expect(calls).toMatchObject([
    { call: { path: ['customers', '90000000700013 '] } },
    { call: { body: { userId: 90_000_000_700_013 } } },
  ]);
  for (const call of [calls, calls.slice(0, 1), calls.slice(1)])
    expect(namesIn(call, prefixOf(7, 1))).toEqual(['90000000700013']);
});

test('the names to read are the ids and emails of the calls', () => {
  const call = { api: 'v1', method: 'PUT', path: ['customers', '~p1@X.Example'] } as const;
  const calls = nameCalls([{ call, sender: 0, intake: 0 }], 7, 0);
  expect(namesIn(calls, prefixOf(7, 0))).toEqual(['s7r0-p1@x.example']);
});

test('a plain sequence is about one person under one id, from one sender', () => {
  for (const seed of SEEDS.slice(0, 10)) {
    const calls = sequenceOf(seed, 'plain');
    expect(new Set(calls.map(({ sender }) => sender))).toEqual(new Set([0]));
    const people = JSON.stringify(calls).match(/"~[pa][^"]*"/g);
    expect(new Set(people)).toEqual(new Set(['"~p1"']));
  }
});

test('late calls of a sequence leave removals and identifications to others, and each call writes values of its own', () => {
  const removes = /"DELETE"|"(?:delete|suppress|unsuppress)"/;
  const identifies = /"userId":"[^"]*","anonymousId"/;
  for (const seed of SEEDS) {
    const calls = sequenceOf(seed, 'late');
    const text = JSON.stringify(calls);
    const late = JSON.stringify(calls.filter(({ intake }) => intake === LATE_INTAKE));
    expect(late).not.toMatch(removes);
    expect(late).not.toMatch(identifies);
    const written = text.match(/"v\d+":|"~d\d+"/g) ?? [];
    expect(new Set(written).size).toBe(written.length);
    // An id and an email of one person would be two names.
    const names = new Set(text.match(/~p\d/g));
    expect(new Set(text.match(/~p\d(?:@x.example)?/g)).size).toBe(names.size);
  }
  const all = SEEDS.map((seed) => JSON.stringify(sequenceOf(seed, 'late'))).join(' ');
  for (const part of [removes, identifies, /"anonymousId":"~a\d","event"/, /"lines":/])
    expect(all).toMatch(part);
});

test('a failing sequence is shrunk to the calls that it needs', async () => {
  const calls = sequenceOf(1, 'plain').slice(0, 5);
  const [, needed] = calls;
  const differences = [{ kind: 'attribute lost', words: '' }];
  const smallest = await shrink(
    { seed: 1, run: 0, calls, history: [], differences },
    'attribute lost',
    async (runs) =>
      runs.map((run) => ({
        ...run,
        history: [],
        differences: run.calls.includes(needed as never) ? differences : [],
      })),
  );
  expect(smallest.calls).toEqual([needed]);
  expect(withoutParts(calls, 2).map(({ length }) => length)).toEqual([3, 3, 4]);
});
