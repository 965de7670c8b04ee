import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { CommitSlots } from '../../src/stream/commit-slots.ts';

let slots: CommitSlots;
let areCallsComing: boolean;
let begun: string[];
let releases: Map<string, () => void>;
beforeEach(() => {
  areCallsComing = false;
  slots = new CommitSlots({
    get areCallsComing() {
      return areCallsComing;
    },
  });
  begun = [];
  releases = new Map();
});
const take = (owner: number, name: string, operationCount: number) =>
  void slots.take(owner, operationCount).then((release) => {
    begun.push(name);
    releases.set(name, release);
  });
/** The broker has the group. */
const release = async (name: string | undefined) => {
  releases.get(name ?? '')?.();
  await turn();
};

test('one full group is committed at a time, and workspaces take turns', async () => {
  for (let n = 0; n < 40; n++) take(1, `a${n}`, 1_000);
  take(2, 'b0', 1_000);
  await turn();
  expect(begun).toEqual(['a0']);
  for (let n = 0; n < 3; n++) await release(begun.at(-1));
  expect(begun).toEqual(['a0', 'a1', 'b0', 'a2']);
  for (let n = 0; n < 37; n++) await release(begun.at(-1));
  expect(begun).toHaveLength(41);
});

test('small groups go together: many slow streams do not wait for each other', async () => {
  for (let n = 0; n < 100; n++) take(1, `a${n}`, 10);
  take(1, 'more', 1);
  await turn();
  expect(begun).toHaveLength(100);
  await release('a0');
  expect(begun.at(-1)).toBe('more');
});

test('a group larger than the whole capacity goes alone, and later groups of its workspace wait behind it', async () => {
  take(1, 'small', 1);
  take(1, 'large', 3_000);
  take(1, 'behind', 1);
  await turn();
  expect(begun).toEqual(['small']);
  await release('small');
  expect(begun).toEqual(['small', 'large']);
  await release('large');
  expect(begun).toEqual(['small', 'large', 'behind']);
});

test('the small group of a workspace waits neither for the full group of another one in flight, nor for those before it', async () => {
  for (const owner of [1, 2, 3]) take(owner, `full${owner}`, 1_000);
  take(4, 'small', 10);
  await turn();
  expect(begun).toEqual(['full1', 'small']);
  // One at a time, so that a single call waits for few.
  take(4, 'again', 10);
  await turn();
  expect(begun).toEqual(['full1', 'small']);
  await release('small');
  expect(begun).toEqual(['full1', 'small', 'again']);
});

test('small groups of many workspaces share the capacity kept for them, and do not delay a full group', async () => {
  take(1, 'full1', 1_000);
  take(1, 'full2', 1_000);
  for (let owner = 2; owner < 102; owner++) take(owner, `small${owner}`, 10);
  await turn();
  expect(begun).toHaveLength(1 + 25);
  await release('full1');
  expect(begun.at(-1)).toBe('full2');
});

test('a quarter as much is committed at a time while single calls come', async () => {
  areCallsComing = true;
  for (let n = 0; n < 40; n++) take(1, `a${n}`, 250);
  await turn();
  expect(begun).toEqual(['a0']);
  areCallsComing = false;
  await release('a0');
  expect(begun).toEqual(['a0', 'a1', 'a2', 'a3', 'a4']);
});

test('a workspace has no kept slot while one of its groups is in flight, and has one again after the last', async () => {
  take(4, 'first', 1);
  take(4, 'second', 1);
  take(1, 'full', 998);
  await turn();
  expect(begun).toEqual(['first', 'second', 'full']);
  take(4, 'third', 10);
  take(4, 'fourth', 10);
  await release('first');
  expect(begun).toHaveLength(3);
  await release('second');
  expect(begun).toEqual(['first', 'second', 'full', 'third']);
  await release('third');
  expect(begun.at(-1)).toBe('fourth');
});
