/** Moves of credits as CSV, which people open in spreadsheets. Pure. */
import { csvLine } from '@sluice/domain/value-rules/csv-line';
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

/** The head and a line for each move, as RFC 4180 writes them. */
export const ledgerCsv = (
  entries: readonly Readonly<Record<(typeof COLUMNS)[number], string | number>>[],
): string =>
  [COLUMNS, ...entries.map((entry) => COLUMNS.map((column) => entry[column]))]
    .map(csvLine)
    .join('');
