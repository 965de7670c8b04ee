/**
 * One-time passwords by time (RFC 6238 on RFC 4226), for authenticator apps: HMAC-SHA-1, six digits, 30 seconds. Every
 * app has these values without a parameter. Pure but for the random draws.
 *
 * A code is good in its own step and in the step before and after, since a phone's clock differs and typing takes time.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const STEP_MS = 30_000;
const DIGIT_COUNT = 6;
const STEPS_BESIDE = 1;
/** As long as the hash, as RFC 4226 §4 recommends. */
const SECRET_SIZE_BYTES = 20;
const RECOVERY_CODE_COUNT = 10;
/** 80 bits: too many to find one from its SHA-256. */
const RECOVERY_CODE_SIZE_BYTES = 10;

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648 §6, without padding. */
export function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)])
    .join('');
}

/** Characters outside of base32 are passed over. */
export function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (character) => BASE32.indexOf(character))
    .filter((value) => value >= 0)
    .map((value) => value.toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

/** RFC 4226 §5.3. @param step - the counter: whole steps since 1970. */
export function passwordOfStep(secret: Buffer, step: number, digitCount = DIGIT_COUNT): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac('sha1', secret).update(counter).digest();
  const offset = (hash[hash.length - 1] as number) & 0xf;
  const truncated = hash.readUInt32BE(offset) & 0x7fff_ffff;
  return String(truncated % 10 ** digitCount).padStart(digitCount, '0');
}

/**
 * The step whose password this is; undefined if no current step has it. The caller checks whether it was used before.
 * Of equal passwords of two steps the later counts, so that neither is good again.
 *
 * @param password - six digits.
 */
export function stepOfPassword(
  secret: Buffer,
  password: string,
  nowMs: number,
): number | undefined {
  const given = Buffer.from(password);
  const step = Math.floor(nowMs / STEP_MS);
  let found: number | undefined;
  for (let each = step - STEPS_BESIDE; each <= step + STEPS_BESIDE; each++) {
    const wanted = Buffer.from(passwordOfStep(secret, each));
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) found = each;
  }
  return found;
}

/** @returns base32, as it is typed into an app. */
export const newPasswordSecret = (): string => toBase32(randomBytes(SECRET_SIZE_BYTES));

/** The address that an app reads: `otpauth://totp/Sluice:ada%40example.com?secret=…&issuer=Sluice`. */
export const passwordUri = (secret: string, email: string): string =>
  `otpauth://totp/Sluice:${encodeURIComponent(email)}?secret=${secret}&issuer=Sluice`;

/** Each is good once, in place of a code of the app: `ABCD-EFGH-IJKL-MNOP`. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: RECOVERY_CODE_COUNT }, () => {
    const text = toBase32(randomBytes(RECOVERY_CODE_SIZE_BYTES));
    return (text.match(/.{4}/g) as string[]).join('-');
  });

/** A recovery code as it is hashed: in capitals, without dashes and blanks. */
export const plainRecoveryCode = (text: string): string =>
  text.toUpperCase().replaceAll(/[\s-]/g, '');
