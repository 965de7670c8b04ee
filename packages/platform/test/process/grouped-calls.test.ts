import { expect, test } from 'vitest';
import { GroupedCalls } from '../../src/process/grouped-calls.ts';

interface World {
  readonly groups: number[][];
  readonly calls: GroupedCalls<number, string>;
  /** Ends the longest running group. */
  readonly end: () => Promise<void>;
}

/** The test ends each group. A 13 among it is refused, and a 0 means that all is away. */
function createWorld(groupMax = 100, flightsMax = 1): World {
  const groups: number[][] = [];
  const gates: (() => void)[] = [];
  const calls = new GroupedCalls<number, string>({
    groupMax,
    flightsMax,
    isOnesFault: (error) => (error as Error).message === 'refused',
    async run(inputs) {
      groups.push([...inputs]);
      await new Promise<void>((resolve) => gates.push(resolve));
      if (inputs.includes(13)) throw new Error('refused');
      if (inputs.includes(0)) throw new Error('away');
      return inputs.map((input) => `answer ${input}`);
    },
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return {
    groups,
    calls,
    async end() {
      for (let turns = 0; turns < 3; turns++) await turn();
      gates.shift()?.();
      for (let turns = 0; turns < 3; turns++) await turn();
    },
  };
}

test('calls of one turn are one group, and calls during its request are the next group', async () => {
  const { calls, groups, end } = createWorld();
  const first = [1, 2].map((input) => calls.call(input));
  await new Promise((resolve) => setImmediate(resolve));
  const second = [3, 4, 5].map((input) => calls.call(input));
  await end();
  expect(await Promise.all(first)).toEqual(['answer 1', 'answer 2']);
  await end();
  expect(await Promise.all(second)).toEqual(['answer 3', 'answer 4', 'answer 5']);
  expect(groups).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
});

test('a group is bounded, and so is the number of groups at a time', async () => {
  const { calls, groups, end } = createWorld(2, 2);
  const answers = Promise.all([1, 2, 3, 4, 5].map((input) => calls.call(input)));
  for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(groups).toEqual([
    [1, 2],
    [3, 4],
  ]);
  for (let group = 0; group < 3; group++) await end();
  expect(await answers).toHaveLength(5);
  expect(groups).toHaveLength(3);
});

test('one that is refused fails alone', async () => {
  const { calls, end } = createWorld();
  const answers = Promise.allSettled([1, 13, 2].map((input) => calls.call(input)));
  for (let run = 0; run < 4; run++) await end();
  expect((await answers).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
});

test('if the request of a group fails, all its calls fail without another request', async () => {
  const { calls, groups, end } = createWorld();
  const answers = Promise.allSettled([1, 0].map((input) => calls.call(input)));
  await end();
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(groups).toHaveLength(1);
});
