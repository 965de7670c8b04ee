import { describe, expect, it } from 'vitest';
import { calmestRounds, readCoreTicks } from '../src/host-steal.ts';

describe('time that the host took', () => {
  it('is the eighth number of the line of all cores, and guests are not counted twice', () => {
    const stat = 'cpu  10 1 5 80 2 0 1 7 4 3\ncpu0 5 0 2 40 1 0 0 1 0 0\n';
    expect(readCoreTicks(stat)).toEqual({ stolen: 7, all: 106 });
  });

  it('fails without such a line', () => {
    expect(() => readCoreTicks('intr 1')).toThrow('no line of all cores');
  });
});

describe('rounds', () => {
  /** Rounds of 100 ticks, of which the host takes so many in each. */
  const host = (stolen: readonly number[]) => {
    let reads = 0;
    let taken = 0;
    return () => {
      if (reads % 2 === 1) taken += stolen[(reads - 1) / 2] as number;
      reads++;
      return Promise.resolve({ stolen: taken, all: Math.floor(reads / 2) * 100 });
    };
  };
  const numbersOf = async (count: number, stolen: readonly number[]) => {
    const tries: number[] = [];
    const run = (round: number) => Promise.resolve(tries.push(round));
    const rounds = await calmestRounds(count, run, host(stolen));
    return { tries: tries.length, chosen: rounds.map(({ result }) => result) };
  };

  it('are as many as are wanted while the host leaves them alone', async () => {
    expect(await numbersOf(2, [3, 0])).toEqual({ tries: 2, chosen: [1, 2] });
  });

  it('are run again if it did not', async () => {
    expect(await numbersOf(2, [20, 1, 4, 0])).toEqual({ tries: 4, chosen: [2, 4] });
  });

  it('are the calmest of three times as many if it never does', async () => {
    expect(await numbersOf(2, [30, 8, 20, 9, 40, 10])).toEqual({ tries: 6, chosen: [2, 4] });
  });
});
