/**
 * The cursor of a feed, as its readers hold it: which feed it is of, and the number of an event. A feed that was deleted and
 * made again is another one, so that no cursor of the former skips events of the latter. Pure.
 */
import type { FeedEvent, FeedRange } from '@sluice/database/feeds/feeds';

export type CursorReading =
  /** Goes on after this event. */
  | { readonly outcome: 'read'; readonly after: number }
  | { readonly outcome: 'malformed' }
  /** Later than the last event that there is. */
  | { readonly outcome: 'ahead' }
  /** The next event is not kept, or the cursor is of another feed. */
  | { readonly outcome: 'expired' };

interface Range extends FeedRange {
  readonly webhookId: number;
}

/** In place of a cursor: begin with the next event. */
const LATEST = 'latest';

export const writeCursor = (webhookId: number, sequence: number): string =>
  `${webhookId}.${sequence}`;

/** @param text - absent or empty: from the oldest event that is kept. */
export function readCursor(
  text: string | undefined,
  { webhookId, forgottenThrough, lastSequence }: Range,
): CursorReading {
  if (text === undefined || text === '') return { outcome: 'read', after: forgottenThrough };
  if (text === LATEST) return { outcome: 'read', after: lastSequence };
  const [, feed, number] = /^([1-9]\d{0,9})\.(0|[1-9]\d{0,15})$/.exec(text) ?? [];
  if (feed === undefined) return { outcome: 'malformed' };
  const after = Number(number);
  if (Number(feed) !== webhookId || after < forgottenThrough) return { outcome: 'expired' };
  return after > lastSequence ? { outcome: 'ahead' } : { outcome: 'read', after };
}

/** An event as readers get it, one line of JSON: its body is JSON already, and stays as it was logged. */
export const eventText = (
  { webhookId }: Pick<Range, 'webhookId'>,
  { sequence, eventType, body }: FeedEvent,
): string =>
  `{"cursor":"${writeCursor(webhookId, sequence)}","event_type":${JSON.stringify(eventType)},"event":${body}}`;
