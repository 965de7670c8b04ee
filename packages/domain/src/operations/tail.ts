/**
 * The live tail: lines about received and reported operations, and a reader's filter for them.
 *
 * A tail is a view of passing calls, not a log: lines may be dropped, and no other function depends on them. A line is
 * small, holds no attributes and no event data, and its texts are cut.
 *
 * Beside the walk: `intake/src/calls/tailed-call.ts` (after step 8), `worker/src/imports/publish-rows.ts` (imports) and
 * `worker/src/lane/lane-attempts.ts` (step 13) make lines, `platform/src/tail/tail-source.ts` carries them to
 * `api/src/events/tail-hub.ts`.
 */
import { foldEmail } from '../value-rules/identifier-rule.ts';
import { isError, type Issue } from './issue.ts';
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import type { Operation, PersonIdentifier } from './operation.ts';

/**
 * `received`: an operation was taken. `refused`: a call, or a part of it, was refused or corrected. `reported`: one
 * attempt to send to a webhook.
 */
export type TailKind = 'received' | 'refused' | 'reported';

export interface TailLine {
  readonly kind: TailKind;
  readonly at_ms: number;
  /**
   * Of `received` and `refused`: `accepted`, `mended`, `refused`, `rate_limited`, `overloaded`. Of
   * `reported`: `delivered`, `retrying`, `abandoned`.
   */
  readonly outcome: string;
  /** Of events their name, of reports the event type; null for anything else. */
  readonly name: string | null;
  /** `{ "email": "a@example.com" }`, …: whom it is about, as the call or the report named them. */
  readonly people: readonly Readonly<Record<string, string>>[];
  /** Further facts of that kind of line. */
  readonly details: JsonObject;
}

/** An absent member matches everything. All members are texts: older processes read no other announcements. */
export interface TailFilter {
  /** Any identifier of a person; an email in any letter case. */
  readonly person?: string;
  readonly name?: string;
  readonly outcome?: string;
  /** A kind of call, as `details.source` names it, or how it begins: `pipelines` has `pipelines.track`. */
  readonly source?: string;
  /** Of a delivery attempt, in digits. */
  readonly webhookId?: string;
}

/** Publishes lines. Never waits; lines beyond the capacity are dropped. */
export interface TailPublisher {
  /** Asked before a line is made. */
  readonly isTailed: (environmentId: number) => boolean;
  readonly publish: (environmentId: number, lines: readonly TailLine[]) => void;
}

const TEXT_LENGTH_MAX = 200;
/** Of one call; a batch of thousands is not read line by line. */
const ISSUE_COUNT_MAX = 20;

const cut = (text: string): string => text.slice(0, TEXT_LENGTH_MAX);
const cutOrNull = (text: string | null | undefined): string | null =>
  typeof text === 'string' ? cut(text) : null;

/** True if the reader asked for such a line. */
export function matchesTail(filter: TailFilter, line: TailLine): boolean {
  if (filter.outcome !== undefined && filter.outcome !== line.outcome) return false;
  if (filter.name !== undefined && cut(filter.name) !== line.name) return false;
  const { source, webhook_id: webhookId } = line.details;
  if (filter.source !== undefined && !isOfSource(source, filter.source)) return false;
  if (
    filter.webhookId !== undefined &&
    (typeof webhookId !== 'number' || filter.webhookId !== String(webhookId))
  )
    return false;
  if (filter.person === undefined) return true;
  const wanted = comparable(cut(filter.person));
  return line.people.some((person) =>
    Object.values(person).some((value) => comparable(value) === wanted),
  );
}

const isOfSource = (source: Json | undefined, wanted: string): boolean =>
  typeof source === 'string' && (source === wanted || source.startsWith(`${wanted}.`));

/** The line of an operation that a call brought. */
export function lineOfOperation(operation: Operation, outcome: string, source: string): TailLine {
  const { type, receivedAtMs } = operation;
  const details: JsonObject = { type, source };
  if ('eventId' in operation) details['event_id'] = cut(operation.eventId);
  return {
    kind: 'received',
    at_ms: receivedAtMs,
    outcome,
    name: nameOf(operation),
    people: peopleOf(operation),
    details,
  };
}

function nameOf(operation: Operation): string | null {
  if (operation.type === 'event.track') return cut(operation.name);
  return operation.type === 'message.publish' ? cut(operation.eventType) : null;
}

/** The lines about errors and corrections in a call or a row. `place`: place of the call or row, besides the source. */
export function linesOfIssues(
  issues: readonly Issue[],
  atMs: number,
  source: string,
  place: JsonObject = {},
): TailLine[] {
  return issues.slice(0, ISSUE_COUNT_MAX).map((issue) => ({
    kind: 'refused',
    at_ms: atMs,
    outcome: isError(issue) ? 'refused' : 'mended',
    name: null,
    people: [],
    details: {
      source,
      ...place,
      code: issue.code,
      field: cutOrNull(issue.field),
      message: cut(issue.message),
    },
  }));
}

/** The line of a whole call that was not taken, for a reason outside it. */
export function lineOfRefusal(outcome: string, atMs: number, source: string): TailLine {
  return { kind: 'refused', at_ms: atMs, outcome, name: null, people: [], details: { source } };
}

export interface TailAttempt {
  readonly webhookId: number;
  readonly sequence: number;
  readonly attempt: number;
  readonly outcome: 'delivered' | 'retrying' | 'abandoned';
  readonly status: number | null;
  readonly failure: string | null;
  readonly durationMs: number;
  readonly eventType: string;
  /** As sent, parsed. */
  readonly body: Json;
}

/** The line of one attempt to send to a webhook; its person is read from the body. */
export function lineOfAttempt(attempt: TailAttempt, atMs: number): TailLine {
  const body = isJsonObject(attempt.body) ? attempt.body : {};
  const data = isJsonObject(body['data']) ? body['data'] : {};
  return {
    kind: 'reported',
    at_ms: atMs,
    outcome: attempt.outcome,
    name: nameInReport(attempt.eventType, body),
    people: peopleInReport(data),
    details: {
      event_id: typeof body['event_id'] === 'string' ? cut(body['event_id']) : null,
      webhook_id: attempt.webhookId,
      sequence: attempt.sequence,
      attempt: attempt.attempt,
      status: attempt.status,
      failure: attempt.failure,
      duration_ms: Math.round(attempt.durationMs),
    },
  };
}

const comparable = (value: string): string => (value.includes('@') ? foldEmail(value) : value);

function peopleOf(operation: Operation): Record<string, string>[] {
  const people: Record<string, string>[] = [];
  const add = (identifier: PersonIdentifier | null | undefined): void => {
    if (identifier) people.push({ [identifier.kind]: cut(identifier.value) });
  };
  if ('person' in operation) add(operation.person);
  if ('primary' in operation) {
    add(operation.primary);
    add(operation.secondary);
  }
  if ('anonymousId' in operation && operation.anonymousId !== undefined)
    people.push({ anonymous_id: cut(operation.anonymousId) });
  if (operation.type === 'person.identify') {
    for (const kind of ['id', 'email'] as const) {
      const value = operation.attributes[kind];
      if (typeof value === 'string' && value !== '') people.push({ [kind]: cut(value) });
    }
  }
  if (operation.type === 'metric.report' && operation.recipient !== undefined)
    people.push({ recipient: cut(operation.recipient) });
  return people;
}

/** Of an incoming event, whose `object_type` is its type, its own name: so that a filter finds the call and its deliveries. */
function nameInReport(eventType: string, { object_type, metric }: JsonObject): string {
  return object_type === eventType && typeof metric === 'string' ? cut(metric) : eventType;
}

function peopleInReport(data: JsonObject): Record<string, string>[] {
  const identifiers = isJsonObject(data['identifiers']) ? data['identifiers'] : {};
  const named: [string, Json | undefined][] = [
    ...Object.entries(identifiers),
    ['recipient', data['recipient']],
    ['anonymous_id', data['anonymous_id']],
  ];
  return named.flatMap(([kind, value]) =>
    typeof value === 'string' && value !== '' ? [{ [kind]: cut(value) }] : [],
  );
}
