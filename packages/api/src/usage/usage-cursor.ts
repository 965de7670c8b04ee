/**
 * The cursor of the usage log: the next page's first entry, with the first page's range and mark. The mark divides
 * closed days from runs (`database/src/credits/inbox-preview-usage-reads.ts`). So a log that is read over midnight, or
 * while a day is closed, is one log.
 *
 * Base64url of JSON with a truncated HMAC bound to the account. It names the filters that it was given for; with others
 * it is refused, for its place is not one in their log.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { UsagePosition } from '@sluice/database/credits/inbox-preview-usage-reads';
import { z } from 'zod';

const TAG_LENGTH = 22;
/** How long a cursor may be used. With an older one more of the log would have to be counted run by run. */
const CURSOR_VALID_MS = 86_400_000;

export interface UsageCursor {
  /** Of the first page. */
  readonly begunAtMs: number;
  readonly start: string;
  readonly end: string;
  readonly closedThrough: string | null;
  readonly after: UsagePosition;
}

const day = z.string();
const contents = z.tuple([
  z.string(),
  z.object({
    begunAtMs: z.number(),
    start: day,
    end: day,
    closedThrough: day.nullable(),
    after: z.discriminatedUnion('source', [
      z.object({
        source: z.literal('run'),
        day,
        recordedAtMs: z.number(),
        previewJobId: z.string(),
      }),
      z.object({
        source: z.literal('rollup'),
        day,
        environmentId: z.number(),
        userId: z.number().nullable(),
      }),
    ]),
  }),
]);

/** As the caller gave them: a day that is left out is not the day that it stands for. */
export type CursorFilters = Readonly<Record<string, string | number | undefined>>;

export function writeUsageCursor(
  secret: string,
  accountId: number,
  filters: CursorFilters,
  cursor: UsageCursor,
): string {
  const text = Buffer.from(JSON.stringify([hashOf(filters), cursor])).toString('base64url');
  return `${text}.${tagOf(secret, accountId, text)}`;
}

export type CursorRead =
  | { readonly outcome: 'read'; readonly cursor: UsageCursor }
  /** Not made by us for this account. */
  | { readonly outcome: 'malformed' }
  | { readonly outcome: 'expired' }
  /** Given for other filters. */
  | { readonly outcome: 'mismatch' };

export function readUsageCursor(
  secret: string,
  accountId: number,
  filters: CursorFilters,
  given: string,
  nowMs: number,
): CursorRead {
  const [text = '', tag = '', ...rest] = given.split('.');
  if (rest.length > 0) return { outcome: 'malformed' };
  const expected = Buffer.from(tagOf(secret, accountId, text));
  const found = Buffer.from(tag);
  if (found.length !== expected.length || !timingSafeEqual(found, expected))
    return { outcome: 'malformed' };
  const parsed = contents.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  if (!parsed.success) return { outcome: 'malformed' };
  const [hash, cursor] = parsed.data;
  if (hash !== hashOf(filters)) return { outcome: 'mismatch' };
  return Math.abs(nowMs - cursor.begunAtMs) > CURSOR_VALID_MS
    ? { outcome: 'expired' }
    : { outcome: 'read', cursor };
}

const hashOf = (filters: CursorFilters): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(filters).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, TAG_LENGTH);

const tagOf = (secret: string, accountId: number, text: string): string =>
  createHmac('sha256', secret)
    .update(`usage.${accountId}.${text}`)
    .digest('base64url')
    .slice(0, TAG_LENGTH);
