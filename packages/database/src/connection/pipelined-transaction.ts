/**
 * A transaction whose statements are sent together.
 *
 *   apart      begin ▶◀, claim ▶◀, read ▶◀, insert ▶◀, log ▶◀, commit ▶◀
 *   together   begin, claim, read ▶◀, insert, log ▶◀, commit ▶◀
 *
 * Postgres runs them in order, each with a snapshot of its own, so locks and results are the same. Eight round trips for
 * a lone event took 6 ms, and writes to sockets a third of the worker's time.
 *
 * The trade-off: if a statement fails, the ones behind it fail too, with another reason. The first reason counts.
 */
import { AppError } from '@sluice/domain/values/errors';
import {
  CompiledQuery,
  type DatabaseConnection,
  type QueryExecutor,
  type QueryResult,
} from 'kysely';
import type { Database, DatabaseOrTransaction } from './connection.ts';
import { isDistributed } from './tenant-statements.ts';

export interface PipelinedTransaction {
  /** Answers as a transaction does. Statements that are asked for at once are sent at once. */
  readonly transaction: DatabaseOrTransaction;
  /**
   * The same transaction, for statements without an answer. They count as done when they are sent, and return no
   * rows: to ask for them is a BUG. If one fails, the next statement of `transaction` fails with its error, or the commit does. Not inside of a
   * savepoint, which could be released before the failure is known.
   */
  readonly sending: DatabaseOrTransaction;
}

/** Of a transaction whose failures must be known at each statement, as inside of a savepoint. */
export const waitingForEach = (transaction: DatabaseOrTransaction): PipelinedTransaction => ({
  transaction,
  sending: transaction,
});

/** The same, each statement being answered before the next one is sent: for work with savepoints. */
export const inWaitingTransaction = <Result>(
  database: Database,
  work: (transaction: PipelinedTransaction) => Promise<Result>,
): Promise<Result> =>
  database.transaction().execute((transaction) => work(waitingForEach(transaction)));

/**
 * Runs `work` in a transaction, and commits it. After a failure it is rolled back, and all of its statements have ended.
 *
 * @throws the error of the first statement that failed, else the error of `work`.
 */
export async function inPipelinedTransaction<Result>(
  database: Database,
  work: (transaction: PipelinedTransaction) => Promise<Result>,
): Promise<Result> {
  // Statements that are only sent depend on it too, and could not ask.
  await isDistributed(database);
  const executor = database.getExecutor();
  return executor.provideConnection(async (connection) => {
    const pipeline = new Pipeline(connection);
    void pipeline.send(BEGIN);
    try {
      const result = await work({
        transaction: reaching(executor, connection, (query) => pipeline.answer(query)),
        sending: reaching(executor, connection, (query) => pipeline.send(query)),
      });
      await pipeline.commit();
      return result;
    } catch (error) {
      throw (await pipeline.rollBack()) ?? error;
    }
  });
}

/** Something that statements can be sent to: they arrive at `execute`. */
function reaching(
  executor: QueryExecutor,
  connection: DatabaseConnection,
  execute: Execute,
): DatabaseOrTransaction {
  const reached: DatabaseConnection = {
    executeQuery: execute,
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  };
  const own = executor.withConnectionProvider({
    provideConnection: (consumer) => consumer(reached),
  });
  return { getExecutor: () => own };
}

type Execute = <Row>(query: CompiledQuery) => Promise<QueryResult<Row>>;

const BEGIN = CompiledQuery.raw('begin');
const COMMIT = CompiledQuery.raw('commit');
const ROLLBACK = CompiledQuery.raw('rollback');
const NO_ROWS: QueryResult<never> = {
  get rows(): never {
    throw new AppError('BUG', 'the rows of a statement that is only sent were asked for');
  },
};

class Pipeline {
  /** Of the first statement that failed. */
  failure: unknown = undefined;
  readonly #connection: DatabaseConnection;
  #inProgress: Promise<unknown>[] = [];
  #isOver = false;

  constructor(connection: DatabaseConnection) {
    this.#connection = connection;
  }

  async answer<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const answer = this.#start<Row>(query);
    try {
      return await answer;
    } catch (error) {
      throw this.failure ?? error;
    }
  }

  send(query: CompiledQuery): Promise<QueryResult<never>> {
    // Its failure is kept, and thrown by the next answer.
    this.#start(query).catch(() => undefined);
    return Promise.resolve(NO_ROWS);
  }

  async commit(): Promise<void> {
    // A value that `pg` cannot write fails at this end alone, and Postgres would commit the rest.
    if (this.failure !== undefined) throw this.failure;
    const { rows } = await this.answer<{ readonly command?: string }>(COMMIT);
    await this.#settle();
    if (this.failure !== undefined) throw this.failure;
    // Postgres answers so, without an error, if a statement had failed.
    if (rows[0]?.command !== 'COMMIT') throw new Error('Postgres rolled the transaction back');
  }

  /**
   * Without effect if Postgres has rolled it back already, or the connection is lost.
   *
   * @returns the error of the first statement that failed.
   */
  async rollBack(): Promise<unknown> {
    await this.#settle();
    const { failure } = this;
    this.#isOver = false;
    this.#start(ROLLBACK).catch(() => undefined);
    await this.#settle();
    return failure;
  }

  #start<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    // Behind the end it would run by itself, or in the next transaction of the connection.
    if (this.#isOver) return Promise.reject(new AppError('BUG', 'the transaction is over'));
    if (query === COMMIT || query === ROLLBACK) this.#isOver = true;
    const answer = this.#connection.executeQuery<Row>(query);
    // Its caller may be waiting for another one.
    this.#inProgress.push(answer.catch((error: unknown) => (this.failure ??= error)));
    return answer;
  }

  /** Answers are read in order, and yet a failure is passed on in more steps than a success. */
  async #settle(): Promise<void> {
    const settling = this.#inProgress;
    this.#inProgress = [];
    await Promise.all(settling);
  }
}
