/**
 * Wire format of a reporting webhook: the body, the string that is signed, the headers.
 *
 * The body is written once, when the delivery is logged, and sent byte for byte on every attempt, so that attempts of
 * one delivery differ in their timestamp and signature only.
 *
 * Before: `database/src/delivery/deliveries.ts` logs the body of `deliveryBody` (step 10). After:
 * `worker/src/delivery/deliver-webhook.ts` signs and sends it (step 11). `worker/src/lane/sign-delivery.ts` uses the
 * key, so this file needs no cryptography.
 */
import { personIdOf } from '../values/svc-id.ts';
import type { ReportingEvent } from './reporting-event.ts';

/** First part of the string that is signed; a new scheme would get a new name (`ingestion-webhooks.md` §5). */
const SIGNATURE_VERSION = 'v0';

/**
 * Maximum number of reporting webhooks of a workspace. The specs name no number; products of this kind allow between 10
 * and 100. An event is logged once for each webhook that chose it, so this bounds the rows of one event in Postgres.
 */
export const WEBHOOK_COUNT_MAX = 100;
/**
 * Signature of deliveries. `sluice` is ours, with Standard Webhooks beside it if the webhook asks for it.
 * `standard_webhooks` is that scheme alone.
 */
export const SIGNING_SCHEMES = ['sluice', 'standard_webhooks', 'none'] as const;
export type SigningScheme = (typeof SIGNING_SCHEMES)[number];

/** Of failure without a success, after which a webhook may have itself disabled. */
export const DISABLE_AFTER_DAYS_MAX = 30;

/** Of one customer of a workspace. */
export const APPLICATION_ENDPOINT_COUNT_MAX = 50;

/** Seconds for which an OAuth2 token is kept if its server does not state its lifetime. */
export const TOKEN_KEPT_SECONDS_DEFAULT = 300;

/** OAuth2 client credentials (RFC 6749 §4.4), as they are stored, encrypted. */
export interface OAuth2Client {
  readonly token_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  /** The place in which the token server reads id and secret: the header (HTTP Basic), or the fields of the body. */
  readonly client_authentication: 'basic' | 'body';
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
}

/**
 * How the requests of a webhook prove who sends them, beside signature and headers, and whom they trust. As it is stored,
 * encrypted JSON; an empty object is stored as null.
 */
export interface EndpointCredentials {
  /** PEM: the certificate with those between it and its authority, and its key. */
  readonly client_certificate?:
    | { readonly certificate: string; readonly private_key: string }
    | undefined;
  /** PEM: the only authorities that the endpoint's certificate may come from. */
  readonly certificate_authority?: string | undefined;
  readonly oauth2?: OAuth2Client | undefined;
}

const USER_AGENT = 'Sluice-Webhooks/1.0';

/** The JSON body (`ingestion-webhooks.md` §6). `timestamp` is whole Unix seconds, rounded down. */
export function deliveryBody(event: ReportingEvent, withContent: boolean): string {
  return JSON.stringify({
    event_id: event.eventId,
    object_type: event.objectType,
    metric: event.metric,
    timestamp: Math.floor(event.occurredAtMs / 1000),
    data:
      withContent && event.content !== undefined ? { ...event.data, ...event.content } : event.data,
  });
}

/** The person whom a body of `deliveryBody` is about, by `data.identifiers.svc_id`; null if it has no such member. */
export function personInBody(body: string): number | null {
  // Few bodies without a person are read: the look for the name costs a tenth of a `JSON.parse`.
  if (!body.includes('"svc_id":"')) return null;
  const { data } = JSON.parse(body) as { data?: { identifiers?: { svc_id?: unknown } } };
  const id = data?.identifiers?.svc_id;
  return typeof id === 'string' ? (personIdOf(id) ?? null) : null;
}

/**
 * The input of HMAC-SHA256, with the signing key's characters as the key; the signature is its lowercase hex
 * (`ingestion-conventions.md` §4.5).
 *
 * @param timestamp - the value of the timestamp header of the same attempt.
 * @param body - exactly as sent.
 */
export function stringToSign(timestamp: number, body: string): string {
  return `${SIGNATURE_VERSION}:${timestamp}:${body}`;
}

/** The text that Standard Webhooks 1.0 signs, with HMAC-SHA256 in base64 under `standardKey`. */
export function standardStringToSign(eventId: string, timestamp: number, body: string): string {
  return `${eventId}.${timestamp}.${body}`;
}

const MESSAGE_ID = /^[\w:-]+$/;

/**
 * The id of a delivery as Standard Webhooks signs it: of an id that a client made, each character that a header may not
 * hold, or that separates the parts of the signed text, stands in percent form.
 */
export const standardMessageId = (eventId: string): string =>
  MESSAGE_ID.test(eventId)
    ? eventId
    : encodeURIComponent(eventId.toWellFormed()).replaceAll('.', '%2E');

/** The workspace of an encrypted signing key. It is encrypted into the text, so that it opens in no other workspace. */
export const secretContext = (environmentId: number): string => `environment ${environmentId}`;

const STANDARD_PREFIX = 'whsec_';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * A signing key as receivers of Standard Webhooks write theirs: `whsec_` and the base64 of its
 * bytes. A key that has that form already stands as it is.
 *
 * @param base64Of - of the UTF-8 bytes of a text.
 */
export function standardForm(signingKey: string, base64Of: (text: string) => string): string {
  return isStandardForm(signingKey) ? signingKey : `${STANDARD_PREFIX}${base64Of(signingKey)}`;
}

/** The base64 of the bytes to sign Standard Webhooks with. */
export function standardKey(signingKey: string, base64Of: (text: string) => string): string {
  return standardForm(signingKey, base64Of).slice(STANDARD_PREFIX.length);
}

function isStandardForm(signingKey: string): boolean {
  const encoded = signingKey.slice(STANDARD_PREFIX.length);
  return signingKey.startsWith(STANDARD_PREFIX) && encoded !== '' && BASE64.test(encoded);
}

/** Signatures of one attempt. */
export interface AttemptSignatures {
  /** Of `stringToSign`, with the webhook's key. */
  readonly signature?: string;
  /** With the key that will replace it; only while keys are rotated. */
  readonly nextSignature?: string;
  /** Of `standardStringToSign`, one a key, if the webhook wants these headers too. */
  readonly standard?: { readonly eventId: string; readonly signatures: readonly string[] };
}

/**
 * The headers of one attempt; each attempt has a timestamp and signatures of its own. Time and signature stand there
 * under the names of the spec, and once more under the names that receivers written for Customer.io read. The copy
 * costs 100 bytes and no second signature.
 *
 * @param timestamp - whole Unix seconds at which this attempt is made; the signed text has the same value.
 */
export function deliveryHeaders(
  timestamp: number,
  { signature, nextSignature, standard }: AttemptSignatures,
): Record<string, string> {
  const seconds = String(timestamp);
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
  };
  if (signature !== undefined) {
    headers['x-svc-timestamp'] = seconds;
    headers['x-cio-timestamp'] = seconds;
    headers['x-svc-signature'] = signature;
    headers['x-cio-signature'] = signature;
  }
  if (nextSignature !== undefined) headers['x-svc-signature-next'] = nextSignature;
  if (standard) {
    headers['webhook-id'] = standard.eventId;
    headers['webhook-timestamp'] = seconds;
    headers['webhook-signature'] = standard.signatures.map((each) => `v1,${each}`).join(' ');
  }
  return headers;
}
