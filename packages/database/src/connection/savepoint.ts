/** Part of a transaction that can fail without the rest. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

/**
 * Runs `work` in a savepoint. If it throws an error that `isContained`, its writes are undone, the transaction goes on
 * and the error is thrown to the caller; any other error ends the transaction. May be nested.
 */
export async function inSavepoint<Result>(
  transaction: DatabaseOrTransaction,
  isContained: (error: unknown) => boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  await sql`savepoint part`.execute(transaction);
  try {
    const result = await work();
    await sql`release savepoint part`.execute(transaction);
    return result;
  } catch (error) {
    if (isContained(error)) {
      await sql`rollback to savepoint part`.execute(transaction);
      await sql`release savepoint part`.execute(transaction);
    }
    throw error;
  }
}
