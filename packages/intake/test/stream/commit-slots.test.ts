import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { CommitSlots } from '../../src/stream/commit-slots.ts';

let slots: CommitSlots;
let begun: string[];
beforeEach(() => {
  slots = new CommitSlots();
  begun = [];
});
const take = (owner: number, name: string, operationCount: number) =>
  void slots.take(owner, operationCount).then(() => begun.push(name));

test('one full group is committed at a time, and workspaces take turns', async () => {
  for (let n = 0; n < 40; n++) take(1, `a${n}`, 1_000);
  take(2, 'b0', 1_000);
  await turn();
  expect(begun).toEqual(['a0']);
  for (let n = 0; n < 3; n++) {
    slots.release(1_000);
    await turn();
  }
  expect(begun).toEqual(['a0', 'a1', 'b0', 'a2']);
  for (let n = 0; n < 37; n++) {
    slots.release(1_000);
    await turn();
  }
  expect(begun).toHaveLength(41);
});

test('small groups go together: many slow streams do not wait for each other', async () => {
  for (let n = 0; n < 100; n++) take(n, `a${n}`, 10);
  take(100, 'more', 1);
  await turn();
  expect(begun).toHaveLength(100);
  slots.release(10);
  await turn();
  expect(begun.at(-1)).toBe('more');
});

test('a group that is larger than all of the room goes alone, and none overtakes it', async () => {
  take(1, 'small', 1);
  take(2, 'large', 3_000);
  take(3, 'behind', 1);
  await turn();
  expect(begun).toEqual(['small']);
  slots.release(1);
  await turn();
  expect(begun).toEqual(['small', 'large']);
  slots.release(3_000);
  await turn();
  expect(begun).toEqual(['small', 'large', 'behind']);
});
