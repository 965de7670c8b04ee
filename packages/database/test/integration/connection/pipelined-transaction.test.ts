import { sql } from 'kysely';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createDatabase, type Database } from '../../../src/connection/connection.ts';
import {
  inPipelinedTransaction,
  inWaitingTransaction,
} from '../../../src/connection/pipelined-transaction.ts';
import { inSavepoint } from '../../../src/connection/savepoint.ts';
import { isDistributed } from '../../../src/connection/tenant-statements.ts';
import { pretendCitus } from '../../../src/testing/pretend-citus.ts';
import { startTcpProxyTo } from '../../../src/testing/tcp-proxy.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const WAIT = { timeout: 30_000, interval: 20 };

let database: Database;
let url: string;

beforeEach(async () => {
  ({ database, url } = await createTestDatabase());
  await sql`create table notes (place int primary key, text text not null)`.execute(database);
});

const insert = (place: number, text: string | null = 'a note') =>
  sql`insert into notes values (${place}, ${text})`;

async function placesNow(): Promise<number[]> {
  const { rows } = await sql<{ place: number }>`select place from notes order by place`.execute(
    database,
  );
  return rows.map(({ place }) => place);
}

test('statements are run in the order in which they were asked for, and their rows are there after it', async () => {
  const found = await inPipelinedTransaction(database, async ({ transaction, sending }) => {
    await insert(1).execute(sending);
    await sql`update notes set text = text || ${'!'}`.execute(sending);
    await insert(2).execute(sending);
    const { rows } = await sql<{ text: string }>`select text from notes order by place`.execute(
      transaction,
    );
    return rows.map(({ text }) => text);
  });
  expect(found).toEqual(['a note!', 'a note']);
  expect(await placesNow()).toEqual([1, 2]);
});

test('no statement waits for the answer of another, unless its rows are asked for', async () => {
  const proxy = await startTcpProxyTo(url);
  onTestFinished(() => proxy.close());
  const behind = createDatabase({
    url: proxy.url,
    poolMax: 1,
    applicationName: 'behind a proxy',
    onError: () => undefined,
  });
  onTestFinished(() => behind.destroy());
  // Opens the connection, and asks once whether the database is distributed.
  await inPipelinedTransaction(behind, () => Promise.resolve());
  proxy.holdAnswers();
  const done = inPipelinedTransaction(behind, async ({ sending }) => {
    await insert(1).execute(sending);
    await insert(2).execute(sending);
  });
  await vi.waitFor(async () => expect(await placesNow()).toEqual([1, 2]), WAIT);
  proxy.restore();
  await done;
});

test('to ask for the rows of a statement that was only sent is a fault', async () => {
  const failing = inPipelinedTransaction(database, async ({ sending }) => {
    const { rows } = await insert(1).execute(sending);
    return rows;
  });
  await expect(failing).rejects.toMatchObject({ code: 'BUG' });
  expect(await placesNow()).toEqual([]);
});

test('it is known whether the database is distributed before a statement is only sent', async () => {
  await pretendCitus(database);
  await inPipelinedTransaction(database, async ({ sending }) => {
    expect(await isDistributed(sending)).toBe(true);
  });
});

test('a statement behind the end is refused: its connection serves the next transaction', async () => {
  const left = await inPipelinedTransaction(database, async ({ transaction, sending }) => {
    await insert(1).execute(sending);
    return transaction;
  });
  await expect(insert(2).execute(left)).rejects.toMatchObject({ code: 'BUG' });
  expect(await placesNow()).toEqual([1]);
});

describe('after a failure', () => {
  test('the first reason is thrown, and the transaction is undone', async () => {
    const failing = inPipelinedTransaction(database, async ({ transaction, sending }) => {
      await insert(1).execute(sending);
      await insert(1).execute(sending);
      await insert(2).execute(sending);
      await sql`select place from notes`.execute(transaction);
    });
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    expect(await placesNow()).toEqual([]);
  });

  test('of a statement without a reader, the commit fails with its reason', async () => {
    const failing = inPipelinedTransaction(database, async ({ sending }) => {
      await insert(1).execute(sending);
      await insert(2, null).execute(sending);
    });
    await expect(failing).rejects.toMatchObject({ code: '23502' });
    expect(await placesNow()).toEqual([]);
  });

  test('of several statements that were asked for together, each fails with the first reason', async () => {
    await inPipelinedTransaction(database, async ({ transaction }) => {
      const answers = await Promise.allSettled([
        insert(1).execute(transaction),
        insert(1).execute(transaction),
        insert(2).execute(transaction),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
      for (const each of answers)
        if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: '23505' });
      throw new Error('seen');
    }).catch((error: unknown) => expect(error).toMatchObject({ code: '23505' }));
    expect(await placesNow()).toEqual([]);
  });

  test('of the caller’s own, it is thrown, and the transaction is undone', async () => {
    const failing = inPipelinedTransaction(database, async ({ sending }) => {
      await insert(1).execute(sending);
      throw new Error('not this time');
    });
    await expect(failing).rejects.toThrow('not this time');
    expect(await placesNow()).toEqual([]);
  });

  test('the connection serves the next transaction', async () => {
    for (let round = 1; round <= 30; round++) {
      const failing = inPipelinedTransaction(database, async ({ sending }) => {
        await insert(0, null).execute(sending);
      });
      await expect(failing).rejects.toMatchObject({ code: '23502' });
      await inPipelinedTransaction(database, ({ sending }) => insert(round).execute(sending));
    }
    expect(await placesNow()).toHaveLength(30);
  });

  test('of the connection, the error is thrown, and the pool has another one', async () => {
    const failing = inPipelinedTransaction(database, async ({ transaction, sending }) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
        transaction,
      );
      await sql`select pg_terminate_backend(${rows[0]?.pid}::int)`.execute(database);
      await insert(1).execute(sending);
      await sql`select`.execute(transaction);
    });
    await expect(failing).rejects.toThrow(/terminat|Connection/i);
    await inPipelinedTransaction(database, ({ sending }) => insert(2).execute(sending));
    expect(await placesNow()).toEqual([2]);
  });
});

test('in a waiting transaction, a savepoint takes a failure back alone', async () => {
  await inWaitingTransaction(database, async ({ transaction, sending }) => {
    await insert(1).execute(sending);
    await inSavepoint(
      transaction,
      () => true,
      () => insert(1).execute(sending),
    ).catch(() => undefined);
    await insert(2).execute(sending);
  });
  expect(await placesNow()).toEqual([1, 2]);
});
