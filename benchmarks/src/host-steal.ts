/**
 * What the host of a virtual machine took: time in which one of our cores was wanted and not given (`steal` of
 * `/proc/stat`). It hits who uses both cores harder than who uses one, so a ratio of the two says less the more it is.
 */
import { readFile } from 'node:fs/promises';

/** Beyond it a round says more about the host than about who was measured. */
const STOLEN_SHARE_MAX = 0.03;
/** So often a round that is wanted is tried. */
const TRIES_A_ROUND = 3;

/** The eighth number of the line of all cores. */
const STEAL_COLUMN = 7;

export interface CoreTicks {
  readonly stolen: number;
  readonly all: number;
}

/** @param stat - `/proc/stat`. Guests' time is in that of users already. */
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
 * Runs rounds until so many were left alone by the host, three times as many at most, and returns those in which it
 * took least, in the order in which they were run. Nothing of a round's result has a say in it.
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
