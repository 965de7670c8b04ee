/**
 * Session cookie of the console, and the origins that may use it. Pure, except for the random draw.
 *
 * By HTTPS its name has the prefix `__Host-`, so no other host of the domain can set it. By HTTP it is for this machine
 * alone, and the name has the port, since browsers share cookies among the ports of a host. A browser sends it with the
 * requests of our own pages only (`SameSite=Strict`); a page that was opened from elsewhere is ours too.
 */
import { randomBytes } from 'node:crypto';
import { isOfThisMachine } from '@sluice/domain/accounts/demo-calls';
import { invalidRequest, type Problem } from '../http/problem.ts';

const SECRET_SIZE_BYTES = 32;
/** The account, so that the row is found by its tenant, and the secret. */
const COOKIE = /^([1-9]\d{0,15})\.[\w-]{43}$/;
/** As long as a session lives at most (`console-sessions.ts`). */
const LIFETIME_SECONDS = 7 * 86_400;
/** As long as a sign-in by an identity provider may take (`provider-openings.ts`). */
const SIGN_IN_SECONDS = 600;
const SIGN_IN = '-sign-in';
/** As long as a mailed code is good (`signup-code.ts`). */
const CODE_SECONDS = 600;
const CODE = '-code';
const KNOWN_BROWSER_SECONDS = 180 * 86_400;
const KNOWN_BROWSER = '-known';

/** As Fastify gives them: behind a trusted proxy they have the browser's view. */
export interface Visit {
  readonly method: string;
  readonly protocol: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export function newSessionCookie(accountId: number): string {
  return `${accountId}.${randomBytes(SECRET_SIZE_BYTES).toString('base64url')}`;
}

/** @returns undefined for a text that no session ever had. */
export function accountOfCookie(text: string): number | undefined {
  const accountId = Number(COOKIE.exec(text)?.[1]);
  return Number.isSafeInteger(accountId) ? accountId : undefined;
}

function cookieName({ protocol, host }: Pick<Visit, 'protocol' | 'host'>, kind = ''): string {
  if (protocol === 'https') return `__Host-sluice${kind}`;
  return `sluice${kind}-${/:(\d+)$/.exec(host)?.[1] ?? '80'}`;
}

/** The cookie's text; undefined if there is no cookie. */
export const readSessionCookie = (visit: Visit): string | undefined =>
  readCookie(visit, cookieName(visit));

/** Binds a sign-in by an identity provider to the browser that began it; undefined if there is no cookie. */
export const readSignInCookie = (visit: Visit): string | undefined =>
  readCookie(visit, cookieName(visit, SIGN_IN));

/** Binds a mailed code to the browser that asked for it. */
export const readCodeCookie = (visit: Visit): string | undefined =>
  readCookie(visit, cookieName(visit, CODE));

export const setCodeCookieHeader = (visit: Visit, text: string): string =>
  cookieHeader(visit, cookieName(visit, CODE), text, CODE_SECONDS);

/** Shows that the browser has signed in with an address before; opens no session. */
export const readKnownBrowserCookie = (visit: Visit): string | undefined =>
  readCookie(visit, cookieName(visit, KNOWN_BROWSER));

export const setKnownBrowserCookieHeader = (visit: Visit, text: string): string =>
  cookieHeader(visit, cookieName(visit, KNOWN_BROWSER), text, KNOWN_BROWSER_SECONDS);

/** Undefined if there are several with the name: it cannot be known which one is ours. */
export function readCookie({ headers }: Pick<Visit, 'headers'>, name: string): string | undefined {
  const { cookie } = headers;
  if (typeof cookie !== 'string') return undefined;
  const texts = cookie
    .split(';')
    .map((each) => each.trim())
    .filter((each) => each.startsWith(`${name}=`))
    .map((each) => each.slice(name.length + 1));
  return texts.length === 1 ? texts[0] : undefined;
}

/** @param text - absent: the cookie is taken away. */
export const setCookieHeader = (visit: Visit, text?: string): string =>
  cookieHeader(visit, cookieName(visit), text, LIFETIME_SECONDS);

/** @param text - absent: the cookie is taken away. */
export const setSignInCookieHeader = (visit: Visit, text?: string): string =>
  cookieHeader(visit, cookieName(visit, SIGN_IN), text, SIGN_IN_SECONDS);

function cookieHeader(
  visit: Visit,
  name: string,
  text: string | undefined,
  lifetimeSeconds: number,
): string {
  return [
    `${name}=${text ?? ''}`,
    'Path=/',
    `Max-Age=${text === undefined ? 0 : lifetimeSeconds}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(visit.protocol === 'https' ? ['Secure'] : []),
  ].join('; ');
}

/**
 * Why the visit may not use the cookie, or be given one: it comes from a page of another origin, or by HTTP from
 * another machine. `undefined` if it may.
 */
export function refuseVisit({ method, protocol, host, headers }: Visit): Problem | undefined {
  if (protocol !== 'https' && !isOfThisMachine(host))
    return {
      code: 'forbidden',
      message:
        'the console opens by HTTPS, or by HTTP on this machine alone; a proxy that ends TLS must be in API_TRUSTED_PROXIES and send X-Forwarded-Proto',
    };
  const isRead = method === 'GET' || method === 'HEAD';
  const site = headers['sec-fetch-site'];
  const isForeign = site !== undefined && site !== 'same-origin' && !(isRead && site === 'none');
  // Browsers send the origin with every call that is no read.
  const isForeignWrite = !isRead && headers['origin'] !== `${protocol}://${host}`;
  if (isForeign || isForeignWrite)
    return {
      code: 'forbidden',
      message:
        'a session of the console works only in the pages of the console; send a token in Authorization',
    };
  return undefined;
}

/** A call names its caller once. */
export const TWO_CALLERS: Problem = invalidRequest([
  {
    field: 'Authorization',
    reason: 'conflict',
    message:
      'Authorization must not be sent with the cookie of the console: one call has one caller',
    source: { parameter: 'Authorization' },
  },
]);
