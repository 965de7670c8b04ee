/**
 * A file of events: the rules for its first line, and the meaning of one row.
 *
 * Rules: `ingestion-webhooks.md` §2, `ingestion-conventions.md` §7. A row is a track call, read by the same rules, with
 * these differences. The people must exist: a file's event does not create a person. A timestamp must be readable: a
 * column of typing errors would otherwise become a year of events dated today. Cells are texts: `"42"` stays a text,
 * because a file does not state the type of its values. An empty cell is no property.
 *
 * The event id is made from the import and the row, so that a row that is read twice is counted once.
 *
 * Pure. Before: `worker/src/imports/read-csv.ts`. After: `worker/src/imports/import-rows.ts`.
 */
import { cleanObject } from '../parsing/clean-json.ts';
import { readEventName } from '../parsing/event-fields.ts';
import { readRequiredEmail, readRequiredText } from '../parsing/identifiers.ts';
import { isError, type Issue } from '../operations/issue.ts';
import { setKey, type JsonObject } from '../values/json.ts';
import {
  EVENT_NAME_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  PIPELINES_REQUEST_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import { IMPORT_SOURCE, type TrackEvent } from '../operations/operation.ts';
import { CallDraft } from '../parsing/parse.ts';
import { isAbsent, trimmed } from '../value-rules/verdict.ts';
import { isStorableText } from '../values/storable-text.ts';
import { readInstantMs } from '../parsing/timestamps.ts';

export type ImportIdentifier = 'id' | 'email';

/** The columns with a meaning; other columns are properties. */
export interface ImportColumns {
  readonly names: readonly string[];
  readonly nameAt: number;
  readonly personAt: number;
  /** -1 if there is no such column. */
  readonly timestampAt: number;
}

export type ColumnsOutcome =
  | { readonly outcome: 'read'; readonly columns: ImportColumns }
  | { readonly outcome: 'unusable'; readonly message: string };

export interface ImportedRow {
  /** Absent if the row has an error. */
  readonly event: TrackEvent | undefined;
  /** Each names its column in `field`. */
  readonly issues: readonly Issue[];
}

export interface RowContext {
  readonly environmentId: number;
  readonly importId: number;
  readonly identifier: ImportIdentifier;
  /** From 1, the line of names not counted. It is a part of the event's id, so its count stays. */
  readonly rowNumber: number;
  readonly receivedAtMs: number;
}

/**
 * @param linesBefore - lines in front of the line of names.
 * @returns the number that a spreadsheet shows beside the row: it counts the line of names too.
 */
export const spreadsheetRow = (rowNumber: number, linesBefore = 0): number =>
  linesBefore + rowNumber + 1;

const COLUMN_COUNT_MAX = 100;
const COLUMN_NAME_LENGTH_MAX = 150;

/** The first record of a file. */
export function readColumns(record: readonly string[]): ColumnsOutcome {
  const names = record.map(trimmed);
  const find = (name: string): number => {
    const at = names.indexOf(`_svc_${name}`);
    return at >= 0 ? at : names.indexOf(`_cio_${name}`);
  };
  const nameAt = find('name');
  const personAt = find('customer_id');
  const unusable = (message: string): ColumnsOutcome => ({ outcome: 'unusable', message });
  const namedCount = names.filter((name) => name !== '').length;
  if (namedCount > COLUMN_COUNT_MAX)
    return unusable(`the file has ${namedCount} columns; the bound is ${COLUMN_COUNT_MAX}`);
  if (nameAt < 0) return unusable(`the first line must have a column _svc_name; ${found(names)}`);
  if (personAt < 0)
    return unusable(`the first line must have a column _svc_customer_id; ${found(names)}`);
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    // As at the end of a line that ends with a comma. Its cells must be empty (`checkRecord`).
    if (name === '') continue;
    if (!isStorableText(name))
      return unusable(
        `the name of column ${index + 1} holds U+0000; remove it and send the file again`,
      );
    if (name.length > COLUMN_NAME_LENGTH_MAX)
      return unusable(`the name of column ${index + 1} is longer than ${COLUMN_NAME_LENGTH_MAX}`);
    if (seen.has(name)) return unusable(`two columns have the name ${JSON.stringify(name)}`);
    seen.add(name);
  }
  return { outcome: 'read', columns: { names, nameAt, personAt, timestampAt: find('timestamp') } };
}

/** The columns of the first line, for a person who has to find out which file was sent. */
const found = (names: readonly string[]): string => {
  const shown = names.slice(0, 5).map((name) => JSON.stringify(name.slice(0, 40)));
  return `it has ${names.length} ${names.length === 1 ? 'column' : 'columns'} (${shown.join(', ')}${names.length > 5 ? ', …' : ''})`;
};

/** One row after the first line. */
export function readImportRow(
  columns: ImportColumns,
  record: readonly string[],
  row: RowContext,
): ImportedRow {
  const { environmentId, receivedAtMs } = row;
  const draft = new CallDraft(
    { environmentId, receivedAtMs, newId: () => eventIdOf(row), phoneIdentifies: false },
    'track',
  );
  checkRecord(draft, columns, record);
  const name = readEventName(
    draft,
    record[columns.nameAt],
    columnName(columns, columns.nameAt),
    EVENT_NAME_SIZE_BYTES_MAX,
  );
  const person = readImportPerson(draft, columns, record, row.identifier);
  const occurredAtMs = readOccurredAtMs(draft, columns, record, receivedAtMs);
  const data = readProperties(draft, columns, record);
  const event: TrackEvent | undefined =
    draft.isRefused || name === undefined || person === undefined
      ? undefined
      : {
          type: 'event.track',
          environmentId,
          receivedAtMs,
          kind: 'event',
          person: { kind: row.identifier, value: person },
          eventId: eventIdOf(row),
          name,
          data,
          occurredAtMs,
          source: IMPORT_SOURCE,
        };
  const { issues } = draft;
  return { event, issues: event === undefined ? issues.filter(isError) : issues };
}

const eventIdOf = ({ importId, rowNumber }: RowContext): string =>
  `import:${importId}:${rowNumber}`;

const columnName = (columns: ImportColumns, at: number): string => columns.names[at] ?? '';

function checkRecord(draft: CallDraft, { names }: ImportColumns, record: readonly string[]): void {
  for (let index = 0; index < record.length; index++) {
    const cell = record[index];
    if (names[index] || isAbsent(cell)) continue;
    const message = `cell ${index + 1} has a value, but its column has no name in the first line; add the name, or empty the cell`;
    draft.refuse('invalid', null, message, cell);
    break;
  }
  // A text has at most three bytes a unit.
  let length = 0;
  for (const cell of record) length += cell.length;
  if (length > PIPELINES_REQUEST_SIZE_BYTES_MAX) {
    const message = `the row is longer than ${PIPELINES_REQUEST_SIZE_BYTES_MAX / 1024} KB`;
    draft.refuse('too_large', null, message);
  }
}

function readImportPerson(
  draft: CallDraft,
  columns: ImportColumns,
  record: readonly string[],
  identifier: ImportIdentifier,
): string | undefined {
  const field = columnName(columns, columns.personAt);
  const cell = record[columns.personAt];
  return identifier === 'email'
    ? readRequiredEmail(draft, cell, field)
    : readRequiredText(draft, cell, field, ID_SIZE_BYTES_MAX);
}

function readOccurredAtMs(
  draft: CallDraft,
  columns: ImportColumns,
  record: readonly string[],
  receivedAtMs: number,
): number {
  const text = record[columns.timestampAt];
  const field = columnName(columns, columns.timestampAt);
  return readInstantMs(draft, text, field, 'it is refused') ?? receivedAtMs;
}

/** A dotted name is a key with a dot in it: a file has no nesting. */
function readProperties(
  draft: CallDraft,
  columns: ImportColumns,
  record: readonly string[],
): JsonObject {
  const { names, nameAt, personAt, timestampAt } = columns;
  const data: JsonObject = {};
  for (const [index, cell] of record.entries()) {
    if (cell === '' || index === nameAt || index === personAt || index === timestampAt) continue;
    const name = names[index];
    if (name !== undefined && name !== '') setKey(data, name, cell);
  }
  return cleanObject(draft, data, '');
}
