/** A feed as `GET /v1/feeds` shows it: the events of a webhook, to be read instead of received. */
import type { Described } from '../client/operations.ts';

export type Feed = Described<'Feed'>;

/** As the API writes them. */
export const CURSOR = /^[1-9]\d{0,9}\.(?:0|[1-9]\d{0,15})$/;

const numberOf = (cursor: string): number => Number(cursor.split('.')[1] ?? 0);

/** How many events are kept: a feed numbers them without a gap. */
export const keptCountOf = ({ oldest, latest }: Pick<Feed, 'oldest' | 'latest'>): number =>
  numberOf(latest) - numberOf(oldest);
