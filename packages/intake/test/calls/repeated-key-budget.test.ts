/**
 * The budget of searches for repeated keys in permissive mode.
 *
 * Any bodies may come: as many are searched as 0.5 % of a core can read.
 */
import { expect, test } from 'vitest';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';

const BYTES_PER_SECOND = 1_000_000;
const SAVED_BYTES_MAX = 4_000_000;
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
/** The last member comes twice, so the whole is read to find it. */
const repeating = (sizeBytes: number) => bytes(`{"b":"${'x'.repeat(sizeBytes - 20)}","a":1,"a":2}`);
const harmless = (sizeBytes: number) => bytes(`{"b":"${'x'.repeat(sizeBytes - 8)}"}`);

function looksAt(atMs = 0) {
  const clock = { nowMs: atMs };
  return { clock, looks: new RepeatedKeyLooks(() => clock.nowMs) };
}
/** Of so many bodies of a kilobyte. */
const countFound = (looks: RepeatedKeyLooks, count: number): number =>
  Array.from({ length: count }, () => looks.mayRepeatKey(repeating(1_000))).filter(Boolean).length;

test('each body of an ordinary second is looked at', () => {
  const { looks, clock } = looksAt();
  for (let second = 0; second < 3; second++) {
    clock.nowMs = second * 1_000;
    for (let call = 0; call < 800; call++) expect(looks.mayRepeatKey(harmless(1_000))).toBe(false);
    expect(looks.mayRepeatKey(repeating(1_000))).toBe(true);
  }
});

test('beyond that it is not, until time has passed', () => {
  const { looks, clock } = looksAt(5_000);
  for (let call = 0; call < 4_000; call++) looks.mayRepeatKey(harmless(1_000));
  expect(countFound(looks, 100)).toBe(0);
  clock.nowMs += 100;
  // The clock is read once in sixteen calls.
  expect(countFound(looks, 16)).toBeGreaterThan(0);
});

test('a sender whose bodies all repeat a key costs no more than the budget', () => {
  const { looks, clock } = looksAt();
  let foundCount = 0;
  for (let step = 0; step < 1_000; step++) {
    clock.nowMs += 10;
    foundCount += countFound(looks, 100);
  }
  // Ten seconds, and the bytes that may be saved up: each costs its search and ten more for its place.
  const foundCountMax = Math.ceil((10 * BYTES_PER_SECOND + SAVED_BYTES_MAX) / 11_000);
  expect(foundCount).toBeLessThanOrEqual(foundCountMax);
  expect(foundCount).toBeGreaterThan(foundCountMax / 2);
});

test('the budget saves up four seconds at most, so a longer body is never searched', () => {
  const { looks, clock } = looksAt();
  clock.nowMs += 3_600_000;
  expect(looks.mayRepeatKey(repeating(SAVED_BYTES_MAX + 1))).toBe(false);
  expect(looks.mayRepeatKey(repeating(SAVED_BYTES_MAX))).toBe(true);
  expect(looks.mayRepeatKey(repeating(100))).toBe(false);
});
