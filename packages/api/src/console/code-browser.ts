/**
 * The browser of a sign-in by a mailed code. Two cookies, neither of which opens a session.
 *
 * The first is drawn at each start and binds the code: only its browser can try the code, so a stranger who knows the
 * address cannot spend the owner's tries. The second is an HMAC of the address and stays in a browser that has signed in.
 * Starts with it are counted apart, so strangers' starts cannot use up the codes of the owner's browser. It grants
 * only that, and ends when `API_SECRET` is replaced.
 */
import type { SignInLimits } from '@sluice/database/users/sign-in-codes';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { SIGNUP_LIMITS } from '../accounts/signup.ts';
import {
  readCodeCookie,
  readKnownBrowserCookie,
  setCodeCookieHeader,
  setKnownBrowserCookieHeader,
  type Visit,
} from '../auth/session-cookie.ts';

const SECRET_SIZE_BYTES = 32;

/**
 * Six codes an hour with five tries each: the chance to guess a code of an address is 30 in a million an hour. The stop
 * of a day applies to starts, and the six codes of the last hour still have their tries, so it is at most 129 in a million
 * a day. Known browsers have the same again: 60 in a million an hour and 258 a day together, for callers who have also
 * signed in with the address. One network cannot use up the codes of the others. With two networks a stranger can, and
 * the owner then signs in from a known browser, by the operator's code, or an hour or a day later.
 */
export const SIGN_IN_LIMITS: SignInLimits = {
  startsPerHourAndIp: SIGNUP_LIMITS.startsPerHourAndIp,
  perHour: { ofEmail: 6, ofEmailAndIp: 3 },
  failuresPerDay: { ofEmail: 100, ofEmailAndIp: 50 },
};

/** Draws the cookie that binds a code. */
export function bindCode(visit: Visit): { readonly header: string; readonly browserHash: Buffer } {
  const text = randomBytes(SECRET_SIZE_BYTES).toString('base64url');
  return { header: setCodeCookieHeader(visit, text), browserHash: hashSecret(text) };
}

/** Of a browser that has asked for no code it is the hash of an empty text, to which no code is bound. */
export const browserHashOf = (visit: Visit): Buffer => hashSecret(readCodeCookie(visit) ?? '');

export function isKnownBrowser(secret: string, visit: Visit, email: string): boolean {
  const given = hashSecret(readKnownBrowserCookie(visit) ?? '');
  return timingSafeEqual(given, hashSecret(knownBrowserText(secret, email)));
}

/** For the browser of a session that a code has opened. */
export const rememberBrowser = (secret: string, visit: Visit, email: string): string =>
  setKnownBrowserCookieHeader(visit, knownBrowserText(secret, email));

function knownBrowserText(secret: string, email: string): string {
  const key = createHmac('sha256', secret).update('known browser').digest();
  return createHmac('sha256', key).update(email.toLowerCase()).digest('base64url');
}
