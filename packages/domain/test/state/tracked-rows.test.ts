import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RowsOfPeople } from '../../src/state/tracked-rows.ts';

interface Row {
  readonly environmentId: number;
  readonly personId: number;
  readonly token: string;
  readonly note: number;
}

const rowOf = fc.record({
  environmentId: fc.constant(1),
  personId: fc.integer({ min: 1, max: 3 }),
  token: fc.constantFrom('a', 'b', 'c'),
  note: fc.integer({ min: 0, max: 9 }),
});
const stepOf = fc.record({ does: fc.constantFrom('set', 'delete', 'ask'), row: rowOf });

test('one person’s rows are the same as a scan of all rows finds, after any sets and deletions', () => {
  fc.assert(
    fc.property(fc.array(rowOf, { maxLength: 6 }), fc.array(stepOf), (loaded, steps) => {
      const rows = new RowsOfPeople<Row>(({ personId, token }) => `${personId} ${token}`, loaded);
      for (const { does, row } of steps) {
        if (does === 'set') rows.set(row);
        else if (does === 'delete') rows.delete(row);
        else
          expect(new Set(rows.of(row))).toEqual(
            new Set([...rows.rows()].filter(({ personId }) => personId === row.personId)),
          );
      }
    }),
  );
});
