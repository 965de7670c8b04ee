/** A call of the vendor's webhook → the event in it, where the signature is the vendor's and fresh. */
import { Stripe } from 'stripe';

export interface ReceivedEvent {
  readonly eventId: string;
  readonly type: string;
  readonly objectId: string;
}

/** An older signature may be a recorded one that somebody plays back. */
const TOLERANCE_SECONDS = 300;

/** Only for its webhook functions, which use no key. */
const stripe = new Stripe('sk_unused');

/**
 * @param body - the bytes as they came: one that was parsed and written again has another signature.
 * @returns undefined where the signature is missing, wrong or too old.
 */
export function readVendorEvent(
  body: Buffer,
  signature: string,
  secret: string,
  nowMs: number,
): ReceivedEvent | undefined {
  try {
    const event = stripe.webhooks.constructEvent(
      body,
      signature,
      secret,
      TOLERANCE_SECONDS,
      undefined,
      nowMs,
    );
    const object = event.data.object as { id?: unknown };
    return {
      eventId: event.id,
      type: event.type,
      objectId: typeof object.id === 'string' ? object.id : '',
    };
  } catch {
    return undefined;
  }
}
