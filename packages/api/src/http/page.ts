/**
 * Paging by position, the same on every list: `limit` and `start` in, `next` out (empty at the end).
 *
 * A token is the sort key of the last row shown. So every page costs one index range, and rows that arrive meanwhile
 * neither repeat nor hide others. Tokens are not secret and not signed: they hold a position only, and every statement
 * names its tenant.
 */
import { isStorableText } from '@sluice/domain/values/storable-text';
import { z } from 'zod';
import { invalidRequest } from './problem.ts';
import { RequestRefused } from './request-validation.ts';

/** The longest position: an issue's field of 200 characters, which JSON may write with six each. */
const TOKEN_LENGTH_MAX = 2_048;

/** `start` of the first page is absent; clients that build queries from empty values send it empty. */
export const pageQuery = (limitMax: number, limitDefault: number) => ({
  start: z
    .string()
    .max(TOKEN_LENGTH_MAX)
    .optional()
    .meta({ description: '`next` of the page before; absent or empty for the first page.' }),
  limit: z
    .string()
    .regex(/^\d{1,9}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(1).max(limitMax))
    .default(limitDefault)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: limitMax,
      description: `Rows a page; ${limitDefault} by default.`,
    }),
});

export const nextToken = z.string().meta({
  description: '`start` of the next page; empty on the last page.',
});

/** Makes the token of a position. */
export function writePageToken(position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/**
 * The position that `start` names; undefined on the first page.
 *
 * @throws RequestRefused if it is not a token of a list with this shape of position, in the form that `writePageToken`
 *   writes.
 */
export function readStart<Position extends z.ZodType>(
  start: string | undefined,
  position: Position,
): z.infer<Position> | undefined {
  if (start === undefined || start === '') return undefined;
  const given = readJson(Buffer.from(start, 'base64url').toString('utf8'));
  const parsed = position.safeParse(given);
  // Decoding forgives padding, the other alphabet and characters of neither, and JSON forgives blanks.
  const isAsWritten = Buffer.from(JSON.stringify(given) ?? '').toString('base64url') === start;
  if (parsed.success && isAsWritten && isStorable(given)) return parsed.data;
  const message = 'start must be the next of an earlier page of this list';
  throw new RequestRefused(
    invalidRequest([
      { field: 'start', reason: 'invalid', message, source: { parameter: 'start' } },
    ]),
  );
}

/** No row has a text that Postgres refuses, so no page ended there. */
const isStorable = (position: unknown): boolean =>
  !Array.isArray(position) ||
  position.every((part) => typeof part !== 'string' || isStorableText(part));

function readJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** One row more than the page was asked for: its presence means that there is another page. */
export function splitPage<Row>(
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row) => readonly (string | number)[],
): { page: readonly Row[]; next: string } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    page,
    next: rows.length > limit && last !== undefined ? writePageToken(positionOf(last)) : '',
  };
}
