/** `sluice tail --grep` and `--source`. */
import { expect, test } from 'vitest';
import { fitsAll } from '../src/live/line-filter.ts';

const LINE = {
  event: 'reported',
  outcome: 'retrying',
  name: 'Order Completed',
  people: [{ id: 'u1' }, { email: 'a@example.com' }],
  details: { webhook_id: 2, status: 500, failure: null },
};

test.each([
  [[], true],
  [['status=500'], true],
  [['details.status=500', 'id=u1'], true],
  [['status=50'], false],
  [['tatus=500'], false],
  [['order comp'], true],
  [['A@EXAMPLE'], true],
  [['status=500', 'nobody'], false],
  [['failure='], false],
] as const)('%j: %s', (words, fits) => {
  expect(fitsAll(words, LINE)).toBe(fits);
});
