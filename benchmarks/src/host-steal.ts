/**
 * Time stolen by the host of a virtual machine (`steal` of `/proc/stat`): a core was wanted and not given. A program
 * on both cores suffers more than a program on one, so more stolen time makes a ratio of the two less reliable.
 */
import { readFile } from 'node:fs/promises';

/** Beyond it a round measures the host more than the program. */
const STOLEN_SHARE_MAX = 0.03;
/** So often a round that is wanted is tried. */
const TRIES_A_ROUND = 3;

/** The eighth number of the line of all cores. */
const STEAL_COLUMN = 7;

export interface CoreTicks {
  readonly stolen: number;
  readonly all: number;
}

/** @param stat - `/proc/stat`. Guests' time is part of the users' time already. */
export function readCoreTicks(stat: string): CoreTicks {
  const ticks = /^cpu +(.+)$/m
    .exec(stat)?.[1]
    ?.split(' ')
    .slice(0, STEAL_COLUMN + 1)
    .map(Number);
  if (ticks === undefined) throw new Error('/proc/stat has no line of all cores');
  return { stolen: ticks[STEAL_COLUMN] ?? 0, all: ticks.reduce((sum, each) => sum + each, 0) };
}

const ticksNow = async (): Promise<CoreTicks> =>
  readCoreTicks(await readFile('/proc/stat', 'utf8'));

export interface Round<Result> {
  readonly result: Result;
  /** Of the time of all cores. */
  readonly stolenShare: number;
}

/**
 * Runs rounds until so many had no stolen time, three times as many at most. Returns the rounds with the least
 * stolen time, in the order in which they were run. The choice does not depend on a round's result.
 *
 * @param run - by the number of the try, from 1.
 */
export async function calmestRounds<Result>(
  count: number,
  run: (round: number) => Promise<Result>,
  readTicks: () => Promise<CoreTicks> = ticksNow,
): Promise<Round<Result>[]> {
  const rounds: Round<Result>[] = [];
  const isCalm = ({ stolenShare }: Round<Result>): boolean => stolenShare <= STOLEN_SHARE_MAX;
  while (rounds.filter(isCalm).length < count && rounds.length < TRIES_A_ROUND * count) {
    const before = await readTicks();
    const result = await run(rounds.length + 1);
    const after = await readTicks();
    const stolenShare = (after.stolen - before.stolen) / (after.all - before.all);
    rounds.push({ result, stolenShare });
  }
  const chosen = new Set(
    rounds.toSorted((one, other) => one.stolenShare - other.stolenShare).slice(0, count),
  );
  return rounds.filter((round) => chosen.has(round));
}

/** For a report. */
export const stolenShares = (rounds: readonly Round<unknown>[]): number[] =>
  rounds.map(({ stolenShare }) => Number(stolenShare.toFixed(3)));
