import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { CommitSlots } from '../../src/stream/commit-slots.ts';

test('four groups are committed at a time, and workspaces take turns', async () => {
  const slots = new CommitSlots();
  const taken: string[] = [];
  const take = (owner: number, name: string) => void slots.take(owner).then(() => taken.push(name));
  for (let n = 0; n < 40; n++) take(1, `a${n}`);
  take(2, 'b0');
  await turn();
  expect(taken).toEqual(['a0', 'a1', 'a2', 'a3']);
  slots.release();
  slots.release();
  await turn();
  expect(taken.slice(4)).toEqual(['a4', 'b0']);
  for (let n = 0; n < 39; n++) slots.release();
  await turn();
  expect(taken).toHaveLength(41);
  take(3, 'c0');
  await turn();
  expect(taken.at(-1)).toBe('c0');
});
