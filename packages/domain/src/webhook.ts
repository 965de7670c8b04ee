/**
 * What a reporting webhook puts on the wire: the body, the string that is signed, the headers.
 *
 * The body is written once, when the delivery is logged, and sent byte for byte on every attempt,
 * so that attempts of one delivery differ in their timestamp and signature only.
 *
 * Walk: before `database/src/deliveries.ts` logs what `deliveryBody` wrote (step 10); after
 * `worker/src/deliver-webhook.ts` signs it and sends it (step 11). The key is worked with outside,
 * where there is cryptography (`worker/src/sign-delivery.ts`).
 */
import type { ReportingEvent } from './reporting-event.ts';

/** First part of the string that is signed; a new scheme would get a new name (`ingestion-webhooks.md` §5). */
const SIGNATURE_VERSION = 'v0';

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

/**
 * What HMAC-SHA256 is computed over, with the signing key's characters as the key; the signature is
 * its lowercase hex (`ingestion-conventions.md` §4.5).
 *
 * @param timestamp - the value of the timestamp header of the same attempt.
 * @param body - exactly as sent.
 */
export function stringToSign(timestamp: number, body: string): string {
  return `${SIGNATURE_VERSION}:${timestamp}:${body}`;
}

/**
 * The headers of one attempt; each attempt has a timestamp and a signature of its own.
 *
 * @param timestamp - whole Unix seconds at which this attempt is made.
 * @param signature - of `stringToSign` with the same timestamp.
 */
export function deliveryHeaders(timestamp: number, signature: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'x-svc-timestamp': String(timestamp),
    'x-svc-signature': signature,
  };
}
