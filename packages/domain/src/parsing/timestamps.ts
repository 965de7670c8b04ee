/**
 * Fields that hold a time → Unix milliseconds, by the rule of `value-rules/time-rule.ts`.
 *
 * A time that cannot be read, or is absurd, is an issue and `undefined`, never NaN: a wrong time must not cost the
 * event. In strict mode a value that is no date at all does cost the event.
 */
import type { Json } from '../values/json.ts';
import {
  BOUNDS_OF_CLOCKS,
  boundsOfEvents,
  boundsOfOrdering,
  isUnixTimeText,
  type TimeBounds,
} from '../value-rules/time-rule.ts';
import { VALUE_RULES } from '../value-rules/value-rules.ts';
import { parseIsoMs } from '../value-rules/iso-instant.ts';
import { trimmed } from '../value-rules/verdict.ts';
import type { CallDraft } from './parse.ts';

/** The effect of a time that could not be read; an issue has this text. */
export type Otherwise = 'the time of receipt is used' | 'it is left out' | 'it is refused';

/** Reads a time at which something happened, at most a year ahead. Null and blank count as absent. */
export function readInstantMs(
  draft: CallDraft,
  value: unknown,
  field: string,
  otherwise: Otherwise,
): number | undefined {
  return readTimeMs(draft, value, field, otherwise, boundsOfEvents(draft.context.receivedAtMs));
}

/**
 * Reads a time that decides which of two writes is the later, at most a day ahead: the year 9999 would keep everybody
 * else from writing for ever.
 */
export function readOrderingMs(
  draft: CallDraft,
  value: unknown,
  field: string,
): number | undefined {
  return readTimeMs(
    draft,
    value,
    field,
    'it is left out',
    boundsOfOrdering(draft.context.receivedAtMs),
  );
}

/**
 * Unix seconds of an attribute that the service itself reads (`created_at`), as a number. Seconds as text, or in
 * milliseconds, are converted with an issue. A value that is no time stays as it was sent, for the attribute is the
 * client's own.
 */
export function readUnixSeconds(draft: CallDraft, value: Json, field: string): Json {
  if (typeof value === 'string') {
    const text = trimmed(value);
    const instantMs = draft.dialect === 'pipelines' ? parseIsoMs(text, true) : undefined;
    if (instantMs !== undefined) return Math.floor(instantMs / 1_000);
    if (!isUnixTimeText(text)) {
      warnOfNoTime(draft, value, field);
      return value;
    }
  } else if (typeof value !== 'number') {
    warnOfNoTime(draft, value, field);
    return value;
  }
  const verdict = VALUE_RULES.time(value, boundsOfEvents(draft.context.receivedAtMs));
  if (verdict.outcome === 'read') {
    if (verdict.change === 'milliseconds') warnMilliseconds(draft, field, value);
    // Numbers of seconds keep the fraction that they came with.
    else if (typeof value === 'number') return value;
    return Math.floor(verdict.value / 1_000);
  }
  if (verdict.outcome === 'refused')
    draft.warn(
      'timestamp_out_of_range',
      field,
      `${field} ${verdict.because}; it is kept as it was sent`,
      value,
    );
  return value;
}

/** A date or a date-time without a zone is a time, though no Unix seconds can be made of it. */
function warnOfNoTime(draft: CallDraft, value: Json, field: string): void {
  const verdict = VALUE_RULES.time(value, BOUNDS_OF_CLOCKS);
  if (verdict.outcome !== 'refused' || verdict.code === 'out_of_range') return;
  const problem = `${field} ${verdict.because}; it is kept as it was sent`;
  draft.warn('value_not_understood', field, problem, value);
}

/** Reads a time within bounds; see `readInstantMs`. */
export function readTimeMs(
  draft: CallDraft,
  value: unknown,
  field: string,
  otherwise: Otherwise,
  bounds: TimeBounds,
): number | undefined {
  const verdict = VALUE_RULES.time(value, bounds);
  switch (verdict.outcome) {
    case 'absent':
      return undefined;
    case 'read':
      if (verdict.change === 'milliseconds') warnMilliseconds(draft, field, value);
      return verdict.value;
    case 'refused': {
      const problem = `${field} ${verdict.because}`;
      if (otherwise === 'it is refused') draft.refuse('invalid', field, problem, value);
      else if (verdict.code === 'out_of_range')
        draft.warn('timestamp_out_of_range', field, `${problem}; ${otherwise}`, value);
      else draft.correct('timestamp_invalid', field, problem, otherwise, value);
      return undefined;
    }
  }
}

function warnMilliseconds(draft: CallDraft, field: string, value: unknown): void {
  draft.warn(
    'timestamp_in_milliseconds',
    field,
    `${field} is in milliseconds; it must be Unix seconds and was converted`,
    value,
  );
}
