/**
 * A call of the payment provider's webhook → the event in it, where the signature is the payment provider's and fresh.
 */
import { z } from 'zod';

export interface ReceivedEvent {
  readonly eventId: string;
  readonly type: string;
  /** Empty if it is about no object. */
  readonly objectId: string;
}

/** An older signature may be a recorded one that somebody replays. */
const TOLERANCE_SECONDS = 300;

/** Of what the payment provider signed; what it is about is absent if it only says that something happened. */
const event = z.object({
  id: z.string(),
  type: z.string(),
  data: z
    .object({ object: z.object({ id: z.string() }) })
    .optional()
    .catch(undefined),
});

/**
 * @param body - the bytes as they came: one that was parsed and written again has another signature.
 * @returns undefined if the signature is missing, wrong or too old, or what it signs is no event.
 */
export async function readProviderEvent(
  body: Buffer,
  signature: string,
  secret: string,
  nowMs: number,
): Promise<ReceivedEvent | undefined> {
  loading ??= loadSignatures();
  const signatures = await loading;
  try {
    // Not by the SDK's own reading: it refuses events of the newer form, and the payment provider gives up an endpoint
    // that refuses.
    const isSigned =
      signatures?.verifyHeader(body, signature, secret, TOLERANCE_SECONDS, undefined, nowMs) ===
      true;
    if (!isSigned) return undefined;
    const { id, type, data } = event.parse(JSON.parse(body.toString('utf8')));
    return { eventId: id, type, objectId: data?.object.id ?? '' };
  } catch {
    return undefined;
  }
}

/**
 * Only for its webhook functions, which use no key; loaded once, with the first event, as in
 * `open-payment-provider.ts`.
 */
const loadSignatures = async () => {
  const { Stripe } = await import('stripe');
  return new Stripe('sk_unused').webhooks.signature;
};
let loading: ReturnType<typeof loadSignatures> | undefined;
