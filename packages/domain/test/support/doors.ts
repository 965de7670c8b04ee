/** A door to the service, with the sending of a value. */
import { readColumns, readImportRow } from '@sluice/domain/imports/import-file';
import type { Operation } from '@sluice/domain/operations/operation';
import type { Parsed } from '@sluice/domain/parsing/parse';
import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { parseEntity } from '@sluice/domain/track/track-v2';
import { CONTEXT, RECEIVED_AT_MS } from './parsing.ts';

export interface Door {
  readonly name: string;
  readonly send: (value: unknown) => Parsed;
  /** The value that the service read. */
  readonly taken: (operation: Operation) => unknown;
  /** It comes as text here: in a path, a form or a cell. */
  readonly isText?: boolean;
  /** The door's result for an absent or refused value, if it is not `undefined`. */
  readonly otherwise?: unknown;
  readonly sizeBytesMax?: number;
}

export const pipelines = (call: PipelinesCall, body: object): Parsed =>
  parsePipelines(call, body, CONTEXT);
export const entity = (body: object): Parsed => parseEntity(body, CONTEXT);
export const row = (cells: Record<string, string>, identifier: 'id' | 'email'): Parsed => {
  const names = ['_svc_name', '_svc_customer_id', '_svc_timestamp'];
  const columns = readColumns(names);
  if (columns.outcome !== 'read') throw new Error(columns.message);
  const record = [cells.name ?? 'e', cells.person ?? 'a@example.com', cells.timestamp ?? ''];
  const context = { environmentId: 7, importId: 1, rowNumber: 1, receivedAtMs: RECEIVED_AT_MS };
  const { event, issues } = readImportRow(columns.columns, record, { ...context, identifier });
  return { operations: event ? [event] : [], issues };
};

export const field =
  (...path: string[]) =>
  (operation: Operation): unknown =>
    path.reduce<unknown>(
      (value, key) => (value as Record<string, unknown> | undefined)?.[key],
      operation,
    );
export const person = field('person', 'value');
export const event = { type: 'person', action: 'event', name: 'e' };
export const object = { type: 'object', action: 'identify' };
