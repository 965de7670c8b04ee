/**
 * Codes of faults and corrections in calls, for both APIs.
 *
 * An issue of severity `error` means that the call (or the batch item) was not taken; a `warning` that it was, with a
 * change that the message names.
 */

/** Wire reasons of Track v2 (`ingestion-conventions.md` §2.3) and codes of the issues log. */
export const ISSUE_CODES = {
  // the call itself
  authentication_failed: 'error',
  invalid_encoding: 'error',
  invalid_json: 'error',
  too_large: 'error',
  required: 'error',
  invalid: 'error',
  too_long: 'error',
  unsupported: 'error',
  // taken, but not quite as sent
  timestamp_in_milliseconds: 'warning',
  timestamp_invalid: 'warning',
  timestamp_out_of_range: 'warning',
  identifier_trimmed: 'warning',
  email_invalid: 'warning',
  attributes_left_out: 'warning',
  value_corrected: 'warning',
  previous_id_missing: 'warning',
  value_not_understood: 'warning',
  characters_replaced: 'warning',
  number_not_finite: 'warning',
  number_rounded: 'warning',
  key_repeated: 'warning',
  // found while processing
  duplicate_event: 'warning',
  suppressed: 'error',
  identifier_conflict: 'error',
  person_not_found: 'error',
  object_not_found: 'error',
  skipped_update: 'warning',
  // a fault of ours: dead-lettered whole, applied once it is mended
  parked: 'warning',
} as const satisfies Record<string, 'error' | 'warning'>;

export type IssueCode = keyof typeof ISSUE_CODES;

/**
 * The corrections of permissive mode and Track that strict mode refuses: the warning, and its error in strict mode. A
 * client in strict mode wants to know of lost data at once, by the answer.
 */
export const STRICT_ERRORS = {
  timestamp_invalid: 'invalid',
  email_invalid: 'invalid',
  attributes_left_out: 'too_large',
  characters_replaced: 'invalid',
  number_not_finite: 'invalid_json',
  key_repeated: 'invalid_json',
  previous_id_missing: 'required',
} as const satisfies Partial<Record<IssueCode, IssueCode>>;

export interface Issue {
  readonly code: IssueCode;
  /**
   * Path of the field in the call's body, or in the batch item's, dots between levels: `traits.email`. Null if it is
   * about no single field.
   */
  readonly field: string | null;
  /** One sentence for the person who sent it; names the field and the bound. */
  readonly message: string;
  /** JSON pointer (RFC 6901) of a place within the item, if a schema found it. */
  readonly pointer?: string;
  /** 0-based, in batch calls. */
  readonly batchIndex?: number;
  /** Number of calls that it loses; 1 if absent. */
  readonly callCount?: number;
  /** The start of the offending value, at most 200 characters. */
  readonly sample?: string;
  /** Of a recorded issue: the API credential of the call, if intake knows it. */
  readonly credentialId?: number;
}

/** True if the call or item was not taken because of it. */
export function isError(issue: Issue): boolean {
  return ISSUE_CODES[issue.code] === 'error';
}

/**
 * Fields that the log of a day names, of a kind of issue (a call and a code), however many the others have. A sender chooses the
 * names of its attributes, and anybody can read the write key of a web page, so a day's log has a bounded number of rows.
 */
const FIELDS_OF_KIND_MIN = 5;
/** Of a kind in a day, while the workspace has less than its bound. */
const FIELDS_OF_KIND_MAX = 200;
/** Of a workspace in a day; beyond it a kind has `FIELDS_OF_KIND_MIN`. */
const FIELDS_OF_WORKSPACE_MAX = 1_000;

/** Fields whose names below the first level are the sender's. */
const LISTS = new Set([
  'attributes',
  'batch',
  'context',
  'data',
  'identifiers',
  'properties',
  'traits',
]);

/** Rows with a field that the log of a day has. */
export interface NamedFields {
  readonly ofKind: number;
  readonly ofWorkspace: number;
}

/** True if the log may name one more field of the kind. */
export const mayNameField = ({ ofKind, ofWorkspace }: NamedFields): boolean =>
  ofKind < FIELDS_OF_KIND_MIN ||
  (ofKind < FIELDS_OF_KIND_MAX && ofWorkspace < FIELDS_OF_WORKSPACE_MAX);

/** The field under which an issue is counted beyond the bound: its list, or an empty text. */
export function listOfField(field: string): string {
  const [list = ''] = field.split('.', 1);
  return LISTS.has(list) ? `${list}.*` : '';
}
