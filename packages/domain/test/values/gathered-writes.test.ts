import { expect, test } from 'vitest';
import { GatheredWrites } from '../../src/values/gathered-writes.ts';

async function microtasks(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed++) await Promise.resolve();
}

test('writes that come some microtasks apart leave as one, and a later write as another', async () => {
  const writes: string[] = [];
  let corked: string[] | undefined;
  const socket = {
    cork: () => void (corked = []),
    uncork() {
      writes.push(corked!.join(' '));
      corked = undefined;
    },
  };
  const gathered = new GatheredWrites(() => socket);
  const write = (text: string): void => {
    gathered.expectWrite();
    corked!.push(text);
  };
  write('begin');
  await microtasks(5);
  write('insert');
  write('select');
  await microtasks(5);
  write('commit');
  await microtasks(20);
  expect(writes).toEqual(['begin insert select commit']);
  write('begin');
  await microtasks(20);
  expect(writes).toEqual(['begin insert select commit', 'begin']);
});

test('a write may come before there is a connection', async () => {
  const gathered = new GatheredWrites(() => undefined);
  gathered.expectWrite();
  await microtasks(20);
  expect(() => gathered.expectWrite()).not.toThrow();
});
