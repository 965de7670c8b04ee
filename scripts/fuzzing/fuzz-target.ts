/** A fuzz target: a reader of bytes from strangers, and its promise for every input. */
import type { Random } from '@sluice/domain/values/seeded-random';

export interface FuzzTarget {
  readonly seeds: readonly (string | Buffer)[];
  /** Of the format, one byte a character. */
  readonly words: readonly string[];
  /** How often the last input reached each part of code that `instrument.ts` cannot count. */
  readonly counts?: Uint8Array;
  /** Throws if the reader breaks a promise. @param random - for choices beside the input, such as the cuts. */
  run(input: Buffer, random: Random): void | Promise<void>;
}

/** The input in pieces, some of them empty. */
export function cut(input: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < input.length;) {
    const end = Math.min(input.length, at + Math.floor(random() ** 2 * 24));
    pieces.push(input.subarray(at, end));
    at = end;
  }
  return pieces;
}
