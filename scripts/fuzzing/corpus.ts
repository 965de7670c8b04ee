/** Inputs that each reached a new part. Makes the next input from them. */
import type { Random } from '@sluice/domain/values/seeded-random';
import { pick } from '@sluice/domain/values/seeded-random';

/** A longer input shows no more than a shorter one. */
const SIZE_BYTES_MAX = 4_096;
const CHANGES_MAX = 5;
const INTERESTING = [0, 1, 9, 10, 13, 32, 34, 44, 58, 92, 127, 128, 192, 239, 254, 255] as const;

/** Most kept inputs are faulty. A change of a faulty input seldom makes a valid one, so half of the changes begin with a seed. */
const SEED_SHARE = 0.5;

export class Corpus {
  readonly #seeds: readonly Buffer[];
  readonly #inputs: Buffer[];
  /** Given, and not made by a change. */
  readonly #givenCount: number;
  readonly #words: readonly Buffer[];

  /**
   * @param words - of the format, which chance would take long to find.
   * @param kept - by an earlier run.
   */
  constructor(
    seeds: readonly (string | Buffer)[],
    words: readonly string[],
    kept: readonly Buffer[] = [],
  ) {
    this.#seeds = seeds.map((seed) => Buffer.from(seed as string));
    this.#inputs = [...this.#seeds, ...kept];
    this.#givenCount = this.#inputs.length;
    this.#words = words.map((word) => Buffer.from(word, 'latin1'));
  }

  get inputs(): readonly Buffer[] {
    return this.#inputs;
  }

  /** The first inputs are the seeds and the kept ones themselves. */
  inputAt(run: number, random: Random): Buffer {
    return run < this.#givenCount ? (this.#inputs[run] as Buffer) : this.#change(random);
  }

  keep(input: Buffer): void {
    this.#inputs.push(input);
  }

  #change(random: Random): Buffer {
    let input = pick(random, random() < SEED_SHARE ? this.#seeds : this.#inputs);
    const changeCount = 1 + Math.floor(random() * CHANGES_MAX);
    for (let count = 0; count < changeCount; count++) input = this.#changeOnce(input, random);
    return input.subarray(0, SIZE_BYTES_MAX);
  }

  #changeOnce(input: Buffer, random: Random): Buffer {
    const at = Math.floor(random() * (input.length + 1));
    const end = Math.min(input.length, at + Math.floor(random() * 16));
    const [before, part, after] = [
      input.subarray(0, at),
      input.subarray(at, end),
      input.subarray(end),
    ];
    switch (Math.floor(random() * 7)) {
      case 0:
        return Buffer.concat([before, after]);
      case 1:
        return Buffer.concat([before, part, part, after]);
      case 2:
        return Buffer.concat([before, pick(random, this.#words), part, after]);
      case 3:
        return Buffer.concat([before, pick(random, this.#words), after]);
      case 4: {
        const other = pick(random, this.#inputs);
        return Buffer.concat([before, other.subarray(Math.floor(random() * (other.length + 1)))]);
      }
      case 5:
        return Buffer.concat([before, Buffer.from([pick(random, INTERESTING)]), part, after]);
      default: {
        const changed = Buffer.from(input);
        if (changed.length > 0)
          changed[Math.min(at, changed.length - 1)] = Math.floor(random() * 256);
        return changed;
      }
    }
  }
}
