/**
 * Messages of API, intake and worker about the live tail. Another version, or any other publisher on the same broker,
 * may have sent a message, so no content may end a process.
 *
 * Between `tail-source.ts`, which publishes lines, and `api/src/events/tail-hub.ts`, which announces the readers.
 */
import { isJsonObject, type Json } from '@sluice/domain/values/json';
import type { TailFilter, TailLine } from '@sluice/domain/operations/tail';

/** Announcement of an API process about one workspace. Without filters it has no reader here any more. */
export interface TailAnnouncement {
  /** The API process. */
  readonly hub: string;
  readonly environmentId: number;
  readonly filters: readonly TailFilter[];
  readonly forMs: number;
}

/** Answer: lines of one workspace, and the number of lines dropped before them. */
export interface TailMessage {
  readonly dropped: number;
  readonly lines: readonly TailLine[];
}

export const ANNOUNCEMENT_TOPIC = 'tail';
export const lineTopic = (environmentId: number): string => `tail-${environmentId}`;

/** Undefined if `text` is no announcement. */
export function readAnnouncement(text: string): TailAnnouncement | undefined {
  const said = parsed(text);
  if (!isJsonObject(said)) return undefined;
  const { hub, environmentId, filters, forMs } = said;
  const isOne =
    typeof hub === 'string' &&
    typeof environmentId === 'number' &&
    typeof forMs === 'number' &&
    Array.isArray(filters) &&
    filters.every(areTexts);
  return isOne ? (said as unknown as TailAnnouncement) : undefined;
}

/** Undefined if `text` is no such message. */
export function readTailMessage(text: string): TailMessage | undefined {
  const said = parsed(text);
  if (!isJsonObject(said) || typeof said['dropped'] !== 'number') return undefined;
  const { lines } = said;
  if (!Array.isArray(lines) || !lines.every(isLine)) return undefined;
  return said as unknown as TailMessage;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

const areTexts = (value: Json | undefined): boolean =>
  isJsonObject(value) && Object.values(value).every((text) => typeof text === 'string');

/** As far as filters look. */
const isLine = (line: Json): boolean =>
  isJsonObject(line) &&
  isJsonObject(line['details']) &&
  Array.isArray(line['people']) &&
  line['people'].every(areTexts);
