import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { PREPARED } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

test('a statement that asks for it is prepared once a connection, others never', async () => {
  const { database } = await createTestDatabase();
  await database.connection().execute(async (connection) => {
    for (const value of [1, 2, 3]) {
      const marked = await sql<{ value: number }>`${PREPARED}
        select ${value}::int as value`.execute(connection);
      expect(marked.rows).toEqual([{ value }]);
      const plain = await sql`select ${value}::int as other`.execute(connection);
      expect(plain.rows).toEqual([{ other: value }]);
    }
    const { rows } = await sql<{ text: string; used: number }>`
      select statement as text, (generic_plans + custom_plans)::int as used from pg_prepared_statements`.execute(
      connection,
    );
    expect(rows).toEqual([{ text: expect.stringContaining('as value'), used: 3 }]);
  });
});

test('a statement that fails is prepared anew, and its connection goes on', async () => {
  const { database } = await createTestDatabase();
  await database.connection().execute(async (connection) => {
    const divide = (by: number) =>
      sql<{ value: number }>`${PREPARED} select 6 / ${by}::int as value`.execute(connection);
    await expect(divide(0)).rejects.toThrow('division by zero');
    expect((await divide(2)).rows).toEqual([{ value: 3 }]);
    await expect(divide(0)).rejects.toThrow('division by zero');
    expect((await divide(3)).rows).toEqual([{ value: 2 }]);
  });
});
