/** Publishes an import's rows to the live tail (`GET /v1/stream` of the API). */
import type { FileForm, ImportKey } from '@sluice/database/imports/imports';
import { spreadsheetRow } from '@sluice/domain/imports/import-file';
import type { Issue } from '@sluice/domain/operations/issue';
import { IMPORT_SOURCE, type TrackEvent } from '@sluice/domain/operations/operation';
import { lineOfOperation, linesOfIssues, type TailPublisher } from '@sluice/domain/operations/tail';

/** One row and its result. */
export interface PublishedRow {
  readonly rowNumber: number;
  /** Absent if the row was not taken. */
  readonly event: TrackEvent | undefined;
  readonly issues: readonly Issue[];
}

/**
 * Publishes committed rows, a line for each event and each issue. A file passes faster than people read: the tail drops
 * lines beyond its capacity, and the import does not wait for it.
 */
export function publishRows(
  tail: TailPublisher | undefined,
  { environmentId, importId }: ImportKey,
  { linesBefore }: FileForm,
  rows: readonly PublishedRow[],
  atMs: number,
): void {
  if (!tail?.isTailed(environmentId)) return;
  const lines = rows.flatMap(({ rowNumber, event, issues }) => [
    ...(event ? [lineOfOperation(event, 'accepted', IMPORT_SOURCE)] : []),
    ...linesOfIssues(issues, atMs, IMPORT_SOURCE, {
      import_id: importId,
      row: spreadsheetRow(rowNumber, linesBefore),
    }),
  ]);
  tail.publish(environmentId, lines);
}
