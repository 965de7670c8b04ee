/** Signs one attempt. What is signed is the domain's (`domain/src/webhook.ts`); here is the cryptography. */
import { createHmac } from 'node:crypto';
import { stringToSign } from '@sluice/domain/webhook';

/**
 * Lowercase hex HMAC-SHA256.
 *
 * @param signingKey - used as text, also where it looks like hex.
 * @param timestamp - whole Unix seconds, as in the header of the same attempt.
 */
export function signDelivery(signingKey: string, timestamp: number, body: string): string {
  return createHmac('sha256', signingKey).update(stringToSign(timestamp, body)).digest('hex');
}
