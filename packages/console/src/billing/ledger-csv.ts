/** Moves of credits as CSV, which people open in spreadsheets. Pure. */
import type { AnswerOf } from '../client/operations.ts';

export type LedgerEntry = AnswerOf<
  'get',
  '/v1/accounts/{account_id}/billing/credits/ledger'
>['entries'][number];

const COLUMNS = [
  'entry_id',
  'created_at',
  'reason',
  'pool',
  'from',
  'to',
  'amount',
  'available_after',
] as const satisfies readonly (keyof LedgerEntry)[];
/** A spreadsheet takes such a text for a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

/** The head and a line for each move, as RFC 4180 writes them. */
export const ledgerCsv = (
  entries: readonly Readonly<Record<(typeof COLUMNS)[number], string | number>>[],
): string =>
  [COLUMNS, ...entries.map((entry) => COLUMNS.map((column) => cellOf(entry[column])))]
    .map((cells) => `${cells.join(',')}\r\n`)
    .join('');

function cellOf(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
