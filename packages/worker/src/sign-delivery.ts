/**
 * Signs the attempts of one webhook. What is signed is the domain's (`domain/src/webhook.ts`); here
 * is the cryptography.
 *
 * While keys are rotated `x-svc-signature` stays with the old one and `x-svc-signature-next` has
 * the new one's, until the new one takes its place: a receiver changes its key at any time in
 * between, and one that knows neither header nor rotation sees one key or the other.
 */
import { createHmac } from 'node:crypto';
import type { LaneTarget } from '@sluice/database/lane-target';
import {
  type AttemptSignatures,
  deliveryHeaders,
  standardKey,
  standardStringToSign,
  stringToSign,
} from '@sluice/domain/webhook';

export type SigningTarget = Pick<
  LaneTarget,
  'signingKey' | 'nextSigningKey' | 'nextSignsFromMs' | 'standardWebhooks' | 'customHeaders'
>;

export function isSignedOtherwise(a: SigningTarget, b: SigningTarget): boolean {
  return (
    a.signingKey !== b.signingKey ||
    a.nextSigningKey !== b.nextSigningKey ||
    a.nextSignsFromMs !== b.nextSignsFromMs ||
    a.standardWebhooks !== b.standardWebhooks ||
    a.customHeaders !== b.customHeaders
  );
}

/** Holds the opened keys of one webhook, as of when it was made. */
export class DeliverySigner {
  readonly #current: Key;
  readonly #next: Key | undefined;
  readonly #nextSignsFromMs: number;
  readonly #isStandard: boolean;
  readonly #customHeaders: Readonly<Record<string, string>> | undefined;

  /** @param open - opens a sealed key. */
  constructor(target: SigningTarget, open: (sealed: string) => string) {
    this.#current = keyOf(open(target.signingKey));
    this.#next = target.nextSigningKey === null ? undefined : keyOf(open(target.nextSigningKey));
    this.#nextSignsFromMs = target.nextSignsFromMs ?? Infinity;
    this.#isStandard = target.standardWebhooks;
    this.#customHeaders =
      target.customHeaders === null
        ? undefined
        : (JSON.parse(open(target.customHeaders)) as Record<string, string>);
  }

  /** The headers of an attempt that is made at `atMs`. */
  headers(eventId: string, body: string, atMs: number): Record<string, string> {
    const timestamp = Math.floor(atMs / 1000);
    const isPromoted = atMs >= this.#nextSignsFromMs;
    const current = (isPromoted && this.#next) || this.#current;
    const next = isPromoted ? undefined : this.#next;
    const signatures: { -readonly [Part in keyof AttemptSignatures]: AttemptSignatures[Part] } = {
      signature: signDelivery(current.text, timestamp, body),
    };
    if (next) signatures.nextSignature = signDelivery(next.text, timestamp, body);
    if (this.#isStandard) {
      const keys = next ? [current, next] : [current];
      signatures.standard = {
        eventId,
        signatures: keys.map(({ standard }) => signStandard(standard, eventId, timestamp, body)),
      };
    }
    const ours = deliveryHeaders(timestamp, signatures);
    return this.#customHeaders ? { ...this.#customHeaders, ...ours } : ours;
  }
}

interface Key {
  readonly text: string;
  readonly standard: Buffer;
}

const keyOf = (text: string): Key => ({
  text,
  standard: Buffer.from(standardKey(text, toBase64), 'base64'),
});
const toBase64 = (text: string): string => Buffer.from(text).toString('base64');

/**
 * Lowercase hex HMAC-SHA256.
 *
 * @param signingKey - used as text, also where it looks like hex.
 * @param timestamp - whole Unix seconds, as in the header of the same attempt.
 */
function signDelivery(signingKey: string, timestamp: number, body: string): string {
  return createHmac('sha256', signingKey).update(stringToSign(timestamp, body)).digest('hex');
}

function signStandard(key: Buffer, eventId: string, timestamp: number, body: string): string {
  return createHmac('sha256', key)
    .update(standardStringToSign(eventId, timestamp, body))
    .digest('base64');
}
