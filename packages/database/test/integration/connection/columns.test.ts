/** Columns against a real Postgres: binary values come back unchanged. */
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  bigintColumn,
  booleanColumn,
  integerColumn,
  jsonColumn,
  textColumn,
  timestampColumn,
} from '../../../src/connection/columns.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

const same = <Value>(value: Value): Value => value;
const orNull = <Value>(values: fc.Arbitrary<Value>) =>
  fc.array(fc.option(values), { maxLength: 50 });

/** The values as text, in order, as Postgres has understood them. */
async function valuesOf(column: Buffer, type: string): Promise<(string | null)[]> {
  const { rows } = await sql<{ value: string | null }>`
    select value::text as value from unnest(${column}::${sql.raw(type)}[]) as given (value)`.execute(
    database,
  );
  return rows.map((row) => row.value);
}

const textOf = (value: number | boolean | null): string | null => value?.toString() ?? null;

describe('columns', () => {
  it('carry every storable text', async () => {
    const storable = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', ''));
    await fc.assert(
      fc.asyncProperty(orNull(storable), async (values) => {
        expect(await valuesOf(textColumn(values, same), 'text')).toEqual(values);
      }),
    );
    expect(
      await valuesOf(textColumn(['', null, '{"a"}', 'NULL', '\\', '😀'], same), 'text'),
    ).toEqual(['', null, '{"a"}', 'NULL', '\\', '😀']);
  });

  it('carry whole numbers up to 2^53 on either side of zero', async () => {
    await fc.assert(
      fc.asyncProperty(orNull(fc.maxSafeInteger()), async (values) => {
        expect(await valuesOf(bigintColumn(values, same), 'bigint')).toEqual(values.map(textOf));
      }),
    );
    const integers = [0, -1, 2 ** 31 - 1, -(2 ** 31)];
    expect(await valuesOf(integerColumn(integers, same), 'int')).toEqual(integers.map(textOf));
  });

  it('refuse a number that the column cannot hold, before Postgres sees it', () => {
    expect(() => integerColumn([2 ** 31], same)).toThrow(RangeError);
    expect(() => bigintColumn([2 ** 63], same)).toThrow(RangeError);
    expect(() => timestampColumn([9e18], same)).toThrow(RangeError);
  });

  it('carry times to the millisecond, before and after 2000', async () => {
    const timeMs = fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(9999, 0) });
    await fc.assert(
      fc.asyncProperty(orNull(timeMs), async (values) => {
        const { rows } = await sql<{ at: Date | null }>`
          select at from unnest(${timestampColumn(values, same)}::timestamptz[]) as given (at)`.execute(
          database,
        );
        expect(rows.map((row) => row.at?.getTime() ?? null)).toEqual(values);
      }),
    );
  });

  it('carry booleans and JSON', async () => {
    const booleans = [true, false, null, true];
    expect(await valuesOf(booleanColumn(booleans, same), 'boolean')).toEqual(booleans.map(textOf));
    const objects = [{}, { a: [1, null, 'ü"\\'] }, JSON.parse('{"__proto__": {"b": 1}}') as object];
    const { rows } = await sql<{ value: object }>`
      select value from unnest(${jsonColumn(objects, same)}::jsonb[]) as given (value)`.execute(
      database,
    );
    expect(rows.map((row) => JSON.stringify(row.value))).toEqual(
      objects.map((value) => JSON.stringify(value)),
    );
  });
});
