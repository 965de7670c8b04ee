/** Ends of ownership that the calls of one transaction add. */
import { expect, test } from 'vitest';
import { Deletions } from '../../src/state/replayed-calls.ts';

const key = { environmentId: 1, kind: 'email', value: 'a@x.y' } as const;

test('a name that two people give up in one transaction is remembered once, with both ends', () => {
  const deletions = new Deletions([]);
  deletions.addName(key, 7, { receivedAtMs: 20 });
  deletions.addName(key, 8, { receivedAtMs: 10 });
  expect(deletions.added()).toEqual([
    {
      ...key,
      deletedAtMs: 20,
      owners: new Map([
        ['7 20', 20],
        ['8 10', 10],
      ]),
      names: null,
    },
  ]);
});
