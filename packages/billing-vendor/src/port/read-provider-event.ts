/**
 * Reads the event in a call of the payment provider's webhook.
 *
 * The signature must be the payment provider's, and fresh.
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

/** Parts of the payment provider's signed text. The subject is absent if the event has no object. */
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
 * @returns undefined if the signature is missing, wrong or too old, or the signed text is no event.
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
