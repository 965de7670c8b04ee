/** A feed as `GET /v1/feeds` shows it: the events of a webhook, to be read instead of received. */
import type { Subscription } from '../sentences/subscription-text.ts';

export interface Feed extends Subscription {
  readonly name: string;
  /** ISO 8601. */
  readonly created_at: string;
  /** The cursor before the first event that is kept. */
  readonly oldest: string;
  /** Of the last event. */
  readonly latest: string;
}

/** As the API writes them. */
export const CURSOR = /^[1-9]\d{0,9}\.(?:0|[1-9]\d{0,15})$/;

const numberOf = (cursor: string): number => Number(cursor.split('.')[1] ?? 0);

/** How many events are kept: a feed numbers them without a gap. */
export const keptCountOf = ({ oldest, latest }: Pick<Feed, 'oldest' | 'latest'>): number =>
  numberOf(latest) - numberOf(oldest);
