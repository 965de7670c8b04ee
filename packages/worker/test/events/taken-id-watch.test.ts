import { expect, test } from 'vitest';
import { TakenIdWatch } from '../../src/events/taken-id-watch.ts';

test('ids are looked up for a minute after one was proved taken, and not before', () => {
  const watch = new TakenIdWatch();
  expect(watch.looks(0)).toBe(false);
  watch.proved(1_000);
  expect(watch.looks(1_000)).toBe(true);
  expect(watch.looks(60_999)).toBe(true);
  expect(watch.looks(61_000)).toBe(false);
  watch.proved(70_000);
  watch.proved(80_000);
  expect(watch.looks(139_999)).toBe(true);
  expect(watch.looks(140_000)).toBe(false);
});
