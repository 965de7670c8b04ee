/**
 * Signs the attempts of one webhook. The domain writes the text to sign (`domain/src/delivery/webhook.ts`); here is the
 * cryptography.
 *
 * While keys are rotated `x-svc-signature` stays with the old one and `x-svc-signature-next` has the new one's, until
 * the new one takes its place: a receiver changes its key at any time in between, and one that knows neither header nor
 * rotation sees one key or the other.
 */
import type { LaneTarget } from '@sluice/database/delivery/lane-target';
import {
  type AttemptSignatures,
  deliveryHeaders,
  standardKey,
  standardMessageId,
  standardStringToSign,
  stringToSign,
} from '@sluice/domain/delivery/webhook';
import { HmacKey } from './hmac-key.ts';
import { secretsIn } from './mask-secrets.ts';

export type SigningTarget = Pick<
  LaneTarget,
  | 'signingKey'
  | 'nextSigningKey'
  | 'nextSignsFromMs'
  | 'standardWebhooks'
  | 'signing'
  | 'customHeaders'
>;

export function isSignedOtherwise(a: SigningTarget, b: SigningTarget): boolean {
  return (
    a.signingKey !== b.signingKey ||
    a.nextSigningKey !== b.nextSigningKey ||
    a.nextSignsFromMs !== b.nextSignsFromMs ||
    a.standardWebhooks !== b.standardWebhooks ||
    a.signing !== b.signing ||
    a.customHeaders !== b.customHeaders
  );
}

/** Holds the opened keys of one webhook, as of when it was made. */
export class DeliverySigner {
  readonly #scheme: SigningTarget['signing'];
  readonly #current: Key;
  readonly #next: Key | undefined;
  readonly #nextSignsFromMs: number;
  readonly #customHeaders: Readonly<Record<string, string>> | undefined;
  /** Texts that no kept answer may show (`maskSecrets`). */
  readonly secrets: readonly string[];

  /** @param open - opens an encrypted key. */
  constructor(target: SigningTarget, open: (encrypted: string) => string) {
    this.#scheme = target.signing;
    const isStandard = target.standardWebhooks || target.signing === 'standard_webhooks';
    const keyOf = (encrypted: string): Key => openedKey(open(encrypted), isStandard);
    this.#current = keyOf(target.signingKey);
    this.#next = target.nextSigningKey === null ? undefined : keyOf(target.nextSigningKey);
    this.#nextSignsFromMs = target.nextSignsFromMs ?? Infinity;
    this.#customHeaders =
      target.customHeaders === null
        ? undefined
        : (JSON.parse(open(target.customHeaders)) as Record<string, string>);
    this.secrets = this.#customHeaders ? secretsIn(this.#customHeaders) : [];
  }

  /** The headers of an attempt that is made at `atMs`. */
  headers(eventId: string, body: string, atMs: number): Record<string, string> {
    const timestamp = Math.floor(atMs / 1000);
    const isPromoted = atMs >= this.#nextSignsFromMs;
    const current = (isPromoted && this.#next) || this.#current;
    const next = isPromoted ? undefined : this.#next;
    const signedText = stringToSign(timestamp, body);
    const signatures: { -readonly [Part in keyof AttemptSignatures]: AttemptSignatures[Part] } = {};
    const isOurs = this.#scheme === 'sluice';
    if (isOurs) signatures.signature = current.plain.sign(signedText, 'hex');
    if (isOurs && next) signatures.nextSignature = next.plain.sign(signedText, 'hex');
    if (current.standard && this.#scheme !== 'none') {
      const keys = next?.standard ? [current.standard, next.standard] : [current.standard];
      const messageId = standardMessageId(eventId);
      const text = standardStringToSign(messageId, timestamp, body);
      signatures.standard = {
        eventId: messageId,
        signatures: keys.map((key) => key.sign(text, 'base64')),
      };
    }
    const ours = deliveryHeaders(timestamp, signatures);
    return this.#customHeaders ? { ...this.#customHeaders, ...ours } : ours;
  }
}

interface Key {
  /** Its characters are the key, also if they look like hex. */
  readonly plain: HmacKey;
  /** Only if the webhook wants these signatures too: a signer is made for each drain. */
  readonly standard: HmacKey | undefined;
}

const openedKey = (text: string, isStandard: boolean): Key => ({
  plain: new HmacKey(text),
  standard: isStandard
    ? new HmacKey(Buffer.from(standardKey(text, toBase64), 'base64'))
    : undefined,
});
const toBase64 = (text: string): string => Buffer.from(text).toString('base64');
