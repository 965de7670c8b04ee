/**
 * Numbers for new people and objects, in blocks of 1,000. They come from one sequence, so the apply step can number its
 * new rows without a round trip. A number is never given twice. Numbers of a failed transaction, or of a process that
 * stopped, are skipped.
 */
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Of `number_blocks`: one of its values is so many numbers. */
const BLOCK_SIZE = 1_000;

/** One process's stock, which its concurrent transactions share. */
export class NumberStock {
  readonly #blocks: { next: number; readonly end: number }[] = [];

  get available(): number {
    return this.#blocks.reduce((sum, block) => sum + block.end - block.next, 0);
  }

  /**
   * Waits until there are `count` numbers. The caller must take them before it next waits for
   * anything, or somebody else may.
   */
  async reserve(database: DatabaseOrTransaction, count: number): Promise<void> {
    while (this.available < count) {
      const blockCount = Math.ceil((count - this.available) / BLOCK_SIZE);
      const { rows } = await sql<{ block: string }>`
        select nextval('number_blocks') as block from generate_series(1, ${blockCount}::int)`.execute(
        database,
      );
      for (const row of rows) {
        const end = Number(row.block) * BLOCK_SIZE + 1;
        this.#blocks.push({ next: end - BLOCK_SIZE, end });
      }
    }
  }

  /** The next number. @throws AppError BUG if no number is reserved. */
  take(): number {
    const [block] = this.#blocks;
    if (!block) throw new AppError('BUG', 'more numbers were taken than were reserved');
    const number = block.next++;
    if (block.next === block.end) this.#blocks.shift();
    return number;
  }
}
