/**
 * Input and result of every parser, and its draft.
 *
 * Step 4 of the walk: a body that `JSON.parse` gave becomes operations and issues. Before:
 * `intake/src/auth/rate-limit.ts`. After: `intake/src/calls/accept.ts`. The parsers themselves are `pipelines.ts`,
 * `track-v1.ts` and `track-v2.ts`.
 *
 * Invariants: no JSON value makes a parser throw. A call or batch item with an error gives no operation. An error is
 * one in both modes, and the caller decides the answer; strict mode has a few more (`STRICT_ERRORS`). The parser owns
 * the body from then on: operations hold unchanged parts of it without a copy, and it is never written to.
 *
 * Hand-written rather than zod, because the rules coerce, rename, convert and name the field (measurements at
 * `CallDraft`).
 */
import {
  type Issue,
  type ISSUE_CODES,
  type IssueCode,
  STRICT_ERRORS,
} from '../operations/issue.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import type { EventSchema } from '../event-schemas/schema-document.ts';
import type { ItemsKey, JsonFault, JsonFaults } from './lenient-json.ts';
import type { Operation } from '../operations/operation.ts';
import { toStorableText } from '../values/storable-text.ts';

export interface ParseContext {
  /** The workspace that the credentials named. */
  readonly environmentId: number;
  /** Unix milliseconds by the server's clock. */
  readonly receivedAtMs: number;
  /** Makes a ULID, for events that come without an id. */
  readonly newId: () => string;
  /** Whether the workspace lets a phone number identify a person (Track v2 only). */
  readonly phoneIdentifies: boolean;
  /** True: values that are otherwise corrected are errors (`STRICT_ERRORS`). Absent counts as false. */
  readonly isStrict?: boolean;
  /** The call's name, for the trace of an event; unknown, it is not kept. */
  readonly source?: string;
  /**
   * Of the whole body, inflated. In a batch that is no larger than one item may be, no item needs measuring. Unknown:
   * each item is measured.
   */
  readonly bodySizeBytes?: number;
  /**
   * False promises that the raw body holds no `\u` escape, so that no text in it can be one that
   * Postgres refuses; unknown, every text is looked at.
   */
  readonly hasEscapes?: boolean;
  /** Set if the body is no JSON and was read as nearly JSON (`lenient-json.ts`). */
  readonly faults?: JsonFaults;
  /** Of the workspace, for calls that publish; absent if it has no event types. */
  readonly eventTypes?: EventTypesInForce;
}

/** Event types by their names; undefined if any payload is accepted. */
export type EventTypesInForce = (
  name: string,
) => { readonly version: number; readonly schema: EventSchema } | 'archived' | undefined;

export interface Parsed {
  readonly operations: Operation[];
  /** In batch calls each carries its `batchIndex`, and its field counts from the item. */
  readonly issues: readonly Issue[];
}

type CodeOf<Severity> = {
  [Code in IssueCode]: (typeof ISSUE_CODES)[Code] extends Severity ? Code : never;
}[IssueCode];

/** Track bounds its attributes (`limits.ts`); for Pipelines, ISO 8601 values of traits and properties are converted. */
export type Dialect = 'track' | 'pipelines';

const NO_ISSUES: Issue[] = [];
Object.freeze(NO_ISSUES);

/** Of one call or item: enough to correct it by. 16,000 bad entries of one list are not worth 16,000 sentences. */
const ISSUE_COUNT_MAX = 20;
const SAMPLE_LENGTH_MAX = 200;
/** Paths and messages hold clients' keys, of any length and depth: both are cut. */
const KEY_LENGTH_MAX = 150;
const FIELD_LENGTH_MAX = 200;
const MESSAGE_LENGTH_MAX = 500;

/**
 * One request on its way to operations. Lives for one parser call.
 *
 * Of a 350-byte track call (Node 22, `JSON.parse` of it 1.4 µs), `parsePipelines` takes 0.43 µs for all of it, 0.26 µs if
 * the body has no escapes. A compiled zod schema that only checks the outer shape takes 0.26 µs. One that looks into the
 * properties cannot be compiled and takes 4.5 µs.
 */
export class CallDraft {
  readonly context: ParseContext;
  readonly dialect: Dialect;
  readonly #itemsKey: ItemsKey;
  readonly operations: Operation[] = [];
  issues: Issue[] = NO_ISSUES;
  /** True once the present call or batch item has an error: it will give no operation. */
  isRefused = false;
  /** Number of errors, also of errors without an issue. A caller compares it to learn whether a part was refused. */
  errorCount = 0;
  /** Whether texts from the body must be checked before they are stored. */
  readonly checksTexts: boolean;
  /** Flaws that `clean-json.ts` met in the value that it is cleaning, as bits. */
  flaws = 0;
  #batchIndex: number | undefined;
  /** How many operations the items before gave. */
  #operationCountBefore = 0;
  #issueCountBefore = 0;

  constructor(context: ParseContext, dialect: Dialect, itemsKey: ItemsKey = 'batch') {
    this.context = context;
    this.dialect = dialect;
    this.#itemsKey = itemsKey;
    this.checksTexts = context.hasEscapes !== false;
    if (context.faults !== undefined) this.#tellFaults(context.faults.get(null));
  }

  /** Starts the next item of a batch. */
  beginItem(batchIndex: number): void {
    this.isRefused = false;
    this.#batchIndex = batchIndex;
    this.#operationCountBefore = this.operations.length;
    this.#issueCountBefore = this.issues.length;
    const { faults } = this.context;
    if (faults !== undefined) this.#tellFaults(faults.get(batchIndex));
  }

  /**
   * Records an error and takes back the operations of this call or item.
   *
   * @param value - the value that was sent.
   * @param callCount - number of calls that it loses, if it is not one.
   * @param pointer - to the field, if a schema decides about it.
   */
  refuse(
    code: CodeOf<'error'>,
    field: string | null,
    message: string,
    value?: unknown,
    { callCount, pointer }: { readonly callCount?: number; readonly pointer?: string } = {},
  ): void {
    // The first error is always recorded as an issue, after any number of warnings.
    const isTold = !this.isRefused || this.#hasCapacity();
    this.isRefused = true;
    this.errorCount++;
    this.operations.length = this.#operationCountBefore;
    if (!isTold) return;
    const issue = this.#record(code, field, message, value);
    if (callCount !== undefined) issue.callCount = callCount;
    if (pointer !== undefined) issue.pointer = toStorableText(pointer.slice(0, FIELD_LENGTH_MAX));
  }

  /** Records a warning: something was corrected. */
  warn(code: CodeOf<'warning'>, field: string | null, message: string, value?: unknown): void {
    if (this.#hasCapacity()) this.#record(code, field, message, value);
  }

  /**
   * Records that `field` was corrected as `remedy` describes; in strict mode it is an error instead. `problem` is a
   * sentence about the field, and the remedy continues it.
   */
  correct(
    code: keyof typeof STRICT_ERRORS,
    field: string,
    problem: string,
    remedy: string,
    value?: unknown,
  ): void {
    if (this.context.isStrict === true) this.refuse(STRICT_ERRORS[code], field, problem, value);
    else this.warn(code, field, `${problem}; ${remedy}`, value);
  }

  /** Takes the operation, unless the call or item has an error. */
  take(operation: Operation): void {
    if (this.isRefused) return;
    const { source } = this.context;
    // Operations with an id of their own can be looked up by it, so they keep their source. Set afterwards: a spread
    // would cost more than the rest.
    if (source !== undefined && 'eventId' in operation)
      (operation as { source?: string }).source = source;
    this.operations.push(operation);
  }

  finish(): Parsed {
    return { operations: this.operations, issues: this.issues };
  }

  #tellFaults(faults: readonly JsonFault[] = []): void {
    for (const fault of faults) this.#tellFault(fault);
  }

  #tellFault({ kind, path, found }: JsonFault): void {
    const field = path.reduce<string>(fieldIn, '');
    switch (kind) {
      case 'not-finite':
        this.correct(
          'number_not_finite',
          field,
          `${field} is ${found}, which JSON does not have`,
          'it was read as null',
          found,
        );
        return;
      case 'repeated-key':
        this.correct(
          'key_repeated',
          field,
          `${field} comes more than once in its object`,
          'the last value was taken',
        );
        return;
      case 'not-utf8':
        // Otherwise `clean-json.ts` and `identifiers.ts` record an issue for the values that are stored.
        if (this.context.isStrict === true)
          this.refuse('invalid_json', field, `${field} has bytes that are not UTF-8`);
        return;
      case 'unreadable':
        this.refuse(
          'invalid_json',
          null,
          `item ${this.#batchIndex ?? 0} of ${this.#itemsKey} is not valid JSON: a fault at ${found} of the body`,
        );
    }
  }

  #hasCapacity(): boolean {
    return this.issues.length - this.#issueCountBefore < ISSUE_COUNT_MAX;
  }

  #record(
    code: IssueCode,
    field: string | null,
    message: string,
    value: unknown,
  ): { -readonly [Key in keyof Issue]: Issue[Key] } {
    const issue: { -readonly [Key in keyof Issue]: Issue[Key] } = {
      code,
      field: field === null ? null : toStorableText(field.slice(0, FIELD_LENGTH_MAX)),
      message: toStorableText(message.slice(0, MESSAGE_LENGTH_MAX)),
    };
    if (this.#batchIndex !== undefined) issue.batchIndex = this.#batchIndex;
    if (value !== undefined) issue.sample = sampleOf(value);
    if (this.issues === NO_ISSUES) this.issues = [issue];
    else this.issues.push(issue);
    return issue;
  }
}

/** Objects and arrays are named, not written out: they may be huge, or too deep to be written at all. */
function sampleOf(value: unknown): string {
  if (typeof value === 'string') return toStorableText(value.slice(0, SAMPLE_LENGTH_MAX));
  if (Array.isArray(value)) return `(an array of ${value.length})`;
  if (typeof value === 'object' && value !== null) return '(an object)';
  return String(value);
}

/** True if the body is a JSON object; else an issue. */
export function isBodyObject(draft: CallDraft, body: unknown): body is JsonObject {
  if (isJsonObject(body)) return true;
  draft.refuse('invalid', null, 'the body must be a JSON object', body);
  return false;
}

/** The path of a field inside another, either of which may be the body itself (''). */
export function fieldIn(parent: string, name: string | number): string {
  const key =
    typeof name === 'string' && name.length > KEY_LENGTH_MAX
      ? `${name.slice(0, KEY_LENGTH_MAX)}…`
      : name;
  return parent === '' ? String(key) : `${parent}.${key}`;
}
