import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PassedDeadlines } from '../src/passed-deadlines.ts';

test('a thousand deadlines that pass together leave room for what else comes, in every turn', async () => {
  const deadlines = new PassedDeadlines();
  const acted: number[] = [];
  for (let n = 0; n < 1_000; n++) deadlines.add(() => void acted.push(n));
  expect(acted).toHaveLength(0);
  let before = 0;
  while (acted.length < 1_000) {
    await turn();
    const inThisTurn = acted.length - before;
    expect(inThisTurn).toBeGreaterThan(0);
    expect(inThisTurn).toBeLessThan(50);
    before = acted.length;
  }
  expect(acted).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
});

test('one that passes while others are acted on has its turn too, and none comes twice', async () => {
  const deadlines = new PassedDeadlines();
  const acted: string[] = [];
  deadlines.add(() => {
    acted.push('first');
    deadlines.add(() => void acted.push('second'));
  });
  await turn();
  await turn();
  await turn();
  deadlines.add(() => void acted.push('third'));
  await turn();
  await turn();
  expect(acted).toEqual(['first', 'second', 'third']);
});
