/**
 * Time of a Pipelines call by our clock. The client's clock may be wrong.
 *
 * A client sends the times of the call and of its sending, both by its own clock. The difference `receivedAt - sentAt`
 * is the error of that clock and the time of transport, and the call is moved by it. A `timestamp` that was back-dated
 * on purpose is moved too and not replaced, for it was counted from the same clock.
 *
 * Most clients send `timestamp` and `sentAt` and no `originalTimestamp`. So `ingestion-conventions.md` §3.2, which
 * corrects by `originalTimestamp` alone, would correct no call of theirs (docs/design/README.md lists the fields of
 * each client). A `timestamp` may also be exact while the clock of `sentAt` is wrong, so a correction has bounds. A
 * difference under a second is transport; one over a day is not a clock's error but a body that was kept.
 */
import type { JsonObject } from '../values/json.ts';
import { BOUNDS_OF_CLOCKS, boundsOfEvents, isWithinBounds } from '../value-rules/time-rule.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import type { CallDraft } from '../parsing/parse.ts';
import { readInstantMs, readTimeMs } from '../parsing/timestamps.ts';

const CORRECTION_MS_MIN = 1_000;
const CORRECTION_MS_MAX = 86_400_000;

/**
 * The first of these that applies. `receivedAt - (sentAt - originalTimestamp)` if the client sent both and the result
 * is no absurd time. `timestamp`, moved by `receivedAt - sentAt` if that difference is within the bounds. The time of
 * receipt.
 */
export function readOccurredAtMs(
  draft: CallDraft,
  call: JsonObject,
  batch: JsonObject | undefined,
): number {
  const { receivedAtMs } = draft.context;
  const { originalTimestamp } = call;
  // The item's own goes before the batch's.
  const sentAt = isAbsent(call.sentAt) ? batch?.sentAt : call.sentAt;
  const isCorrected =
    !isAbsent(sentAt) && !(isAbsent(originalTimestamp) && isAbsent(call.timestamp));
  const sentMs = isCorrected ? readClockMs(draft, sentAt, 'sentAt') : undefined;
  if (sentMs !== undefined && !isAbsent(originalTimestamp)) {
    const originalMs = readClockMs(draft, originalTimestamp, 'originalTimestamp');
    const occurredAtMs =
      originalMs === undefined ? undefined : receivedAtMs - (sentMs - originalMs);
    if (occurredAtMs !== undefined && isPossible(draft, occurredAtMs)) return occurredAtMs;
    if (occurredAtMs !== undefined) warnOfCorrected(draft, originalTimestamp);
  }
  const timestampMs = readInstantMs(
    draft,
    call.timestamp,
    'timestamp',
    'the time of receipt is used',
  );
  if (timestampMs === undefined) return receivedAtMs;
  if (sentMs === undefined) return timestampMs;
  const correctedMs = timestampMs + correctionMs(receivedAtMs - sentMs);
  return isPossible(draft, correctedMs) ? correctedMs : timestampMs;
}

const readClockMs = (draft: CallDraft, value: unknown, field: string): number | undefined =>
  readTimeMs(draft, value, field, 'it is left out', BOUNDS_OF_CLOCKS);

/** A correction may give a time that no client may send. */
const isPossible = (draft: CallDraft, occurredAtMs: number): boolean =>
  isWithinBounds(occurredAtMs, boundsOfEvents(draft.context.receivedAtMs));

function warnOfCorrected(draft: CallDraft, originalTimestamp: unknown): void {
  const problem =
    'originalTimestamp, corrected by sentAt, is before 1973 or more than a year ahead; it is left out';
  draft.warn('timestamp_out_of_range', 'originalTimestamp', problem, originalTimestamp);
}

/** The difference by which a time is moved: 0 if it is outside of the bounds. */
const correctionMs = (differenceMs: number): number =>
  Math.abs(differenceMs) >= CORRECTION_MS_MIN && Math.abs(differenceMs) <= CORRECTION_MS_MAX
    ? differenceMs
    : 0;
