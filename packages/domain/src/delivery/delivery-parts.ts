/**
 * Events in parts, of which Postgres receives one in each statement.
 *
 * A body is written here, once, and the data sent contain it up to four times more: a thousand events of a person with
 * 300 KB of attributes took 1 GB at once.
 *
 * Used by `database/src/delivery/deliveries.ts`. Pure.
 */
import type { ReportingEvent } from './reporting-event.ts';
import { deliveryBody } from './webhook.ts';

export interface DeliveryPart {
  readonly events: readonly ReportingEvent[];
  /** Of the first among all events, from 0. */
  readonly start: number;
  /** After the last. */
  readonly end: number;
  readonly bodies: readonly string[];
  /** Null for an event without content. */
  readonly bodiesWithContent: readonly (string | null)[];
}

/** Characters. A thousand bodies of 16 KB have as many, so nearly all batches are one part. */
const PART_LENGTH_MAX = 16_000_000;

/** The part that begins at `start`: as many events as fit, and one at least. */
export function partFrom(events: readonly ReportingEvent[], start: number): DeliveryPart {
  const bodies: string[] = [];
  const bodiesWithContent: (string | null)[] = [];
  let end = start;
  let length = 0;
  while (end < events.length && (end === start || length < PART_LENGTH_MAX)) {
    const event = events[end++] as ReportingEvent;
    const body = deliveryBody(event, false);
    const withContent = event.content === undefined ? null : deliveryBody(event, true);
    bodies.push(body);
    bodiesWithContent.push(withContent);
    length += body.length + (withContent?.length ?? 0);
  }
  const isAll = start === 0 && end === events.length;
  return {
    events: isAll ? events : events.slice(start, end),
    start,
    end,
    bodies,
    bodiesWithContent,
  };
}
