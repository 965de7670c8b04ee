/**
 * Calls as a client sends them, and how a sequence of calls gets names of its own.
 *
 * A generated call contains placeholders: `~` before each name, `%N%` for an event id. `nameCalls` replaces them, so
 * that one sequence can run many times in one fleet.
 */
import type { Json } from './model-state.ts';

export type Body = { readonly [name: string]: Json | undefined };

export type Call =
  | { readonly api: 'pipelines'; readonly path: string; readonly body: Body }
  | {
      readonly api: 'v1';
      readonly method: 'PUT' | 'POST' | 'DELETE';
      /** The segments after `/api/v1/`, not encoded. */
      readonly path: readonly string[];
      readonly body?: Body;
    }
  | { readonly api: 'v2'; readonly path: 'entity' | 'batch'; readonly body: Body };

/** A call, the client that sends it, and the intake that receives it. */
export interface PlannedCall {
  readonly call: Call;
  readonly sender: number;
  readonly intake: 0 | 1;
}

/** A call that an intake answered 200. The two places order all calls and answers of one sequence. */
export interface AnsweredCall extends PlannedCall {
  readonly sentAt: number;
  readonly answeredAt: number;
}

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
        `01H${DIGITS_OF(seed, 10)}${DIGITS_OF(run, 4)}${DIGITS_OF(Number(number), 9)}`,
    );
  return JSON.parse(text) as PlannedCall[];
}

export const prefixOf = (seed: number, run: number): string => `s${seed}r${run}-`;

/** Ids and emails in the calls: the names under which the API can find a person. */
export function namesIn(calls: readonly PlannedCall[], prefix: string): readonly string[] {
  const words = JSON.stringify(calls)
    .toLowerCase()
    .matchAll(/"([^"]+)"/g);
  const people = [...words]
    .map(([, word]) => word as string)
    .filter((word) => word.startsWith(`${prefix}p`));
  return [...new Set(people)].toSorted();
}

/** One line for a report. */
export function describeCall(call: Call): string {
  const body = JSON.stringify(call.body ?? {});
  if (call.api === 'v1') return `${call.method} /api/v1/${call.path.join('/')} ${body}`;
  return call.api === 'v2' ? `POST /api/v2/${call.path} ${body}` : `POST /v1/${call.path} ${body}`;
}
