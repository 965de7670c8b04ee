/** What a request's headers may come as: Node's, a `Headers`, or names and values in any letter case. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far the time of the attempt may be from now, either way; 300 by default. */
  readonly toleranceSeconds?: number;
  /** Unix milliseconds; the clock by default. */
  readonly nowMs?: number;
}

/** Why a request is not one of ours, or is not to be taken. */
export type Refusal =
  /** A header of ours is not there, is there twice, or is malformed. */
  | 'malformed_headers'
  /** Sent longer ago than the tolerance: it may be a replay. */
  | 'too_old'
  /** Sent later than now: look at the clock of this machine. */
  | 'too_new'
  /** Signed with none of the secrets, or changed on the way. */
  | 'wrong_signature';

/**
 * True where the request was signed with one of the secrets, within the tolerance.
 *
 * @param body - the raw body, exactly as it came: before it is parsed.
 * @param secrets - the webhook's secret; while it is rotated, the old and the new one.
 * @throws TypeError when there is no secret, or an empty one, which anybody could sign with; when an option is no finite
 * number; and when the body is neither text nor bytes, because a parser has read it.
 */
export function verifyDelivery(
  headers: DeliveryHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  options?: VerifyOptions,
): boolean;

/** Why `verifyDelivery` says false, for your log; undefined where it says true. Never tell it to the caller. */
export function whyRefused(
  headers: DeliveryHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  options?: VerifyOptions,
): Refusal | undefined;
