/** JSON that is made to cost much: of each shape 64 KB, which is read at once (`exchange.ts`). */
import { expect, test } from 'vitest';
import { streamCalls } from '../../src/calls/calls.ts';
import { mayRepeatKey } from '../../src/calls/repeated-key.ts';
import { readLine } from '../../src/stream/stream-line.ts';

const SIZE_BYTES = 64 * 1_024 - 200;

const repeat = (text: string): string => text.repeat(Math.floor(SIZE_BYTES / text.length));
const listOf = (text: string): string => repeat(`${text},`).slice(0, -1);
/** Members with keys of their own. */
const membersOf = (member: (n: number) => string): string => {
  const members: string[] = [];
  for (let n = 0, sizeBytes = 0; sizeBytes < SIZE_BYTES; n++) {
    members.push(member(n));
    sizeBytes += Buffer.byteLength(member(n)) + 1;
  }
  return members.slice(0, -1).join(',');
};
const half = SIZE_BYTES / 2;

const VALUES: Readonly<Record<string, string>> = {
  'nested arrays': '['.repeat(half) + ']'.repeat(half),
  'nested objects': `${repeat('{"a":').slice(0, (half / 5) * 5)}1${'}'.repeat(half / 5)}`,
  'nested without an end': repeat('['),
  'objects without an end': repeat('{"a":'),
  'one long key': `{"${repeat('k')}":1}`,
  'many keys': `{${membersOf((n) => `"k${n}":${n}`)}}`,
  'keys that are integers': `{${membersOf((n) => `"${(n * 2_654_435_761) % 4_294_967_295}":1`)}}`,
  'a key again and again': `{${listOf('"a":1')}}`,
  'objects with a key twice': `[${listOf('{"a":1,"a":2}')}]`,
  'keys of prototypes': `{${listOf('"__proto__":{}')}}`,
  'a number of 64,000 digits': repeat('9'),
  'a fraction of 64,000 digits': `0.${repeat('1')}`,
  'numbers beyond all bounds': `[${listOf(`1${'0'.repeat(400)}`)}]`,
  'numbers next to zero': `[${listOf('1e-320')}]`,
  'halves of surrogate pairs': `"${repeat('\\ud800')}"`,
  'keys with halves of surrogate pairs': `{${membersOf((n) => `"\\ud800${n}":1`)}}`,
  'escapes of letters': `"${repeat('\\u0041')}"`,
  'escapes of NUL': `"${repeat('\\u0000')}"`,
  'bytes that are no UTF-8': `"${repeat('\u00ff')}"`,
  quotes: repeat('"'),
  backslashes: `"${repeat('\\')}`,
  commas: `[${repeat(',')}]`,
  colons: repeat(':'),
  NaN: `[${listOf('NaN')}]`,
  'empty objects': `[${listOf('{}')}]`,
  addresses: `"${repeat('a.')}@"`,
  times: `{${membersOf((n) => `"k${n}":"2026-01-01T00:00:00Z"`)}}`,
};

const PLACES: Readonly<Record<string, (value: string) => string>> = {
  'a property': (value) => `{"type":"track","userId":"a","event":"e","properties":{"v":${value}}}`,
  'the traits': (value) => `{"type":"identify","userId":"a","traits":${value}}`,
  'the context': (value) => `{"type":"page","userId":"a","context":${value}}`,
  'an id': (value) => `{"type":"page","userId":${value}}`,
  'a time': (value) => `{"type":"page","userId":"a","timestamp":${value}}`,
  'the attributes of a person': (value) =>
    `{"type":"person","action":"identify","identifiers":{"id":"a"},"attributes":${value}}`,
  'the identifiers of a person': (value) =>
    `{"type":"person","action":"identify","identifiers":${value}}`,
  'the whole': (value) => value,
};

/** Milliseconds of processor time of this process. */
const processorMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

test.each(Object.keys(VALUES))('%s are read in a few turns, in each place of a call', (name) => {
  const value = VALUES[name] as string;
  for (const [place, placed] of Object.entries(PLACES))
    for (const call of [streamCalls.pipelines, streamCalls.track]) {
      const bytes = Buffer.from(placed(value), 'latin1');
      const line = { number: 1, bytes, isTooLarge: false };
      const workspace = { environmentId: 1, accountId: '1', phoneIdentifies: true };
      const origin = { call, workspace, isStrict: false, mayRepeatKey, id: undefined };
      let leastMs = Infinity;
      // The first reading is by code that is not compiled yet.
      for (let reading = 0; reading < 3 && leastMs > 50; reading++) {
        const before = processorMs();
        const { operations, issues } = readLine(origin, line, 1_800_000_000_000, () => 'id');
        leastMs = Math.min(leastMs, processorMs() - before);
        expect(operations.length + issues.length, place).toBeGreaterThan(0);
        expect(Buffer.byteLength(JSON.stringify(issues)), place).toBeLessThan(100_000);
      }
      expect(leastMs, place).toBeLessThan(100);
    }
});
