/**
 * Calls as a client sends them, and unique names for a sequence.
 *
 * A generated call contains placeholders: `~` before each name, `=N=` for an id of digits, `%N%` for an event id, `#N#`
 * for a phone number, and `^N^` for the svc_id of the person `~pN` (`learn-svc-ids.ts`). `nameCalls` replaces the
 * others, so that one sequence can run many times in one fleet. In a member, an id of digits becomes a number.
 */
import type { Json } from './model-state.ts';

export type Body = { readonly [name: string]: Json | undefined };

/** A request of a client. */
export type SentCall =
  | { readonly api: 'pipelines'; readonly path: string; readonly body: Body }
  | {
      readonly api: 'v1';
      readonly method: 'PUT' | 'POST' | 'DELETE';
      /** The segments after `/api/v1/`, not encoded. */
      readonly path: readonly string[];
      readonly body?: Body;
    }
  | { readonly api: 'v2'; readonly path: 'entity' | 'batch'; readonly body: Body }
  /** One request of `POST /v1/stream`. Each line is a call of its own; lines take effect in their order. */
  | { readonly api: 'stream'; readonly of: 'pipelines' | 'v2'; readonly lines: readonly Body[] }
  /** A file of events, uploaded to the API. Its rows never make a person. */
  | {
      readonly api: 'import';
      readonly identifier: 'id' | 'email';
      readonly rows: readonly ImportedEvent[];
    };

/** Or a client has read the svc_id of a person from the API. */
export type Call =
  | SentCall
  | { readonly api: 'learn'; readonly id: string; readonly svcId: string };

export interface ImportedEvent {
  readonly name: string;
  /** An id or an email. */
  readonly person: string;
}

/** A call, the client that sends it, and the intake that receives it. */
export interface PlannedCall {
  readonly call: SentCall;
  readonly sender: number;
  readonly intake: 0 | 1;
}

/** A call that was sent. The two places order all calls and answers of one sequence. */
export interface AnsweredCall extends Omit<PlannedCall, 'call'> {
  readonly call: Call;
  readonly sentAt: number;
  /** `NEVER`: the call was not acknowledged. It may take effect at any time after it was sent, and need not. */
  readonly answeredAt: number;
  /** The line before this one in the same stream: it takes effect first. */
  readonly follows?: AnsweredCall;
}

export const NEVER = Infinity;

const DIGITS_OF = (number: number, count: number) => String(number).padStart(count, '0');

/** @param run - distinguishes runs of one seed; each run has its own names and event ids. */
export function nameCalls(
  calls: readonly PlannedCall[],
  seed: number,
  run: number,
): readonly PlannedCall[] {
  const text = JSON.stringify(calls)
    .replaceAll('~', prefixOf(seed, run))
    .replaceAll(
      /%(\d+)%/g,
      (_, number: string) =>
        // A ULID: 26 digits of Crockford's base 32.
        `01H${DIGITS_OF(seed % 10 ** 10, 10)}${DIGITS_OF(run, 4)}${DIGITS_OF(Number(number), 9)}`,
    )
    .replaceAll(
      /("(?:userId|previousId|id)":)"=(\d)="/g,
      (_, member: string, number: string) => `${member}${digitsOf(seed, run)}${number}`,
    )
    .replaceAll(/=(\d)=/g, (_, number: string) => `${digitsOf(seed, run)}${number}`)
    // E.164: at most 15 digits.
    .replaceAll(/#(\d)#/g, (_, number: string) => `+${digitsOf(seed, run)}${number}`);
  return JSON.parse(text) as PlannedCall[];
}

// Seeds of one fleet are consecutive, so their last eight digits differ. A phone number has no room for more.
const digitsOf = (seed: number, run: number): string =>
  `9${DIGITS_OF(seed % 10 ** 8, 8)}${DIGITS_OF(run, 4)}`;

export const prefixOf = (seed: number, run: number): string => `s${seed}r${run}-`;

export const SVC_PREFIX = 'svc_';

/** True for the svc_id of a person as calls have it; names of members begin like it. */
export const isSvcId = (text: string): boolean => /^svc_a3[0-9a-f]+$/.test(text);

/** Ids, emails, phone numbers and svc_ids in the calls. */
export function namesIn(
  calls: readonly (PlannedCall | AnsweredCall)[],
  prefix: string,
): readonly string[] {
  const words = JSON.stringify(calls)
    .toLowerCase()
    .matchAll(/"([^"]*)"|(?<=:)9\d{13}/g);
  const people = [...words]
    .map(([number, word = number]) => word.trim())
    .filter((word) => word.startsWith(`${prefix}p`) || /^\+?9\d{13}$/.test(word) || isSvcId(word));
  return [...new Set(people)].toSorted();
}

/** One line for a report. */
export function describeCall(call: Call): string {
  switch (call.api) {
    case 'pipelines':
      return `POST /v1/${call.path} ${JSON.stringify(call.body)}`;
    case 'v1':
      return `${call.method} /api/v1/${call.path.join('/')} ${JSON.stringify(call.body ?? {})}`;
    case 'v2':
      return `POST /api/v2/${call.path} ${JSON.stringify(call.body)}`;
    case 'stream':
      return `POST /v1/stream (${call.of}) ${JSON.stringify(call.lines)}`;
    case 'learn':
      return `${call.id} has the svc_id ${call.svcId}`;
    case 'import':
      return `POST /v1/imports by ${call.identifier} ${JSON.stringify(call.rows)}`;
  }
}
