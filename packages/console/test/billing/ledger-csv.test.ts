/** Moves of credits in a file for spreadsheets. */
import { expect, test } from 'vitest';
import { ledgerCsv } from '../../src/billing/ledger-csv.ts';

const MOVE = {
  entry_id: 7,
  created_at: '2026-03-01T12:00:00.000Z',
  reason: 'usage',
  pool: 'llm_monthly',
  from: 'account',
  to: 'used',
  amount: -10,
  available_after: 90,
};
const HEAD = 'entry_id,created_at,reason,pool,from,to,amount,available_after\r\n';

test('each move is a line with all its values, and without a move there is the head alone', () => {
  expect(ledgerCsv([])).toBe(HEAD);
  expect(ledgerCsv([MOVE])).toBe(
    `${HEAD}7,2026-03-01T12:00:00.000Z,usage,llm_monthly,account,used,-10,90\r\n`,
  );
});

test.each([
  ['=cmd()', `'=cmd()`],
  ['-1+1', `'-1+1`],
  ['＝1+1', `'＝1+1`],
  ['a,"b"', '"a,""b"""'],
  ['two\nlines', '"two\nlines"'],
])('the text %j is one cell and no formula', (reason, cell) => {
  expect(ledgerCsv([{ ...MOVE, reason }])).toContain(`Z,${cell},llm_monthly,`);
});
