/**
 * When a Pipelines call happened, by our clock although the client's may be wrong.
 *
 * A client says when the call was made and when it was sent, both by its own clock. What it is off by, and the way here,
 * is `receivedAt - sentAt`; the call is moved by as much. A `timestamp` that was back-dated on purpose is moved too and not
 * replaced, for it was counted from the same clock.
 *
 * Most clients send `timestamp` and `sentAt` and no `originalTimestamp`, so `ingestion-conventions.md` §3.2, which corrects
 * by `originalTimestamp` alone, would correct nobody's (docs/design.md says which client sends what). A `timestamp` may
 * also be exact and the clock that says `sentAt` not, so a correction has bounds: under a second is the way here, and
 * over a day is no clock but a body that was kept.
 */
import type { JsonObject } from '../values/json.ts';
import { isInstantMs } from '../value-rules/iso-instant.ts';
import { BOUNDS_OF_CLOCKS } from '../value-rules/time-rule.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import type { CallDraft } from '../parsing/parse.ts';
import { readInstantMs, readTimeMs } from '../parsing/timestamps.ts';

const CORRECTION_MS_MIN = 1_000;
const CORRECTION_MS_MAX = 86_400_000;

/**
 * `receivedAt - (sentAt - originalTimestamp)` where the client says both; else `timestamp`, by the same difference where
 * there is `sentAt` and the difference is within the bounds; else the time of receipt.
 */
export function readOccurredAtMs(
  draft: CallDraft,
  call: JsonObject,
  batch: JsonObject | undefined,
): number {
  const { receivedAtMs } = draft.context;
  // The item's own goes before the batch's.
  const sentAt = isAbsent(call.sentAt) ? batch?.sentAt : call.sentAt;
  const { originalTimestamp } = call;
  const isAbsolute = isAbsent(sentAt);
  const sentAtMs = (): number | undefined =>
    readTimeMs(draft, sentAt, 'sentAt', 'it is left out', BOUNDS_OF_CLOCKS);
  if (!isAbsolute && !isAbsent(originalTimestamp)) {
    const sentMs = sentAtMs();
    const originalMs = readTimeMs(
      draft,
      originalTimestamp,
      'originalTimestamp',
      'it is left out',
      BOUNDS_OF_CLOCKS,
    );
    if (sentMs !== undefined && originalMs !== undefined) {
      const occurredAtMs = receivedAtMs - (sentMs - originalMs);
      if (isInstantMs(occurredAtMs)) return occurredAtMs;
    }
  }
  const timestampMs = readInstantMs(
    draft,
    call.timestamp,
    'timestamp',
    'the time of receipt is used',
  );
  if (timestampMs === undefined) return receivedAtMs;
  if (isAbsolute || !isAbsent(originalTimestamp)) return timestampMs;
  const sentMs = sentAtMs();
  return sentMs === undefined ? timestampMs : timestampMs + correctionMs(receivedAtMs - sentMs);
}

/** What a time is moved by: nothing where the difference is outside of the bounds. */
const correctionMs = (differenceMs: number): number =>
  Math.abs(differenceMs) >= CORRECTION_MS_MIN && Math.abs(differenceMs) <= CORRECTION_MS_MAX
    ? differenceMs
    : 0;
