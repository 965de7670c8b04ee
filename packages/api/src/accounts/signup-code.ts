/**
 * The mailed code of a signup or a sign-in: six digits, kept as an HMAC bound to its purpose, its row and its address.
 * Pure but for the random draw.
 */
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';

export const CODE_LIFETIME_MS = 10 * 60_000;

export const newCode = (): string => String(randomInt(1_000_000)).padStart(6, '0');

export type CodePurpose = 'signup code' | 'sign-in code';

/** @param id - of the row of the signup or the sign-in. */
export function hashCode(
  secret: string,
  purpose: CodePurpose,
  id: string,
  email: string,
  code: string,
): Buffer {
  const key = createHmac('sha256', secret).update(purpose).digest();
  return createHmac('sha256', key)
    .update(JSON.stringify([id, email.toLowerCase(), code]))
    .digest();
}

/** Takes the same time for every input; without a code to compare with, the same work is done. */
export function isCode(
  secret: string,
  purpose: CodePurpose,
  kept: { readonly id: string; readonly codeHmac: Buffer } | undefined,
  email: string,
  code: string,
): boolean {
  const given = hashCode(secret, purpose, kept?.id ?? '0', email, code);
  const isEqual = timingSafeEqual(given, kept?.codeHmac ?? Buffer.alloc(given.length));
  return isEqual && kept !== undefined;
}
