/**
 * Access tokens: short-lived tokens that a service account's token is exchanged for.
 *
 * A JWT (RFC 7519, HS256 only) that names the token it came from and may only narrow it. It lives 15 minutes and ends
 * with that token, also if only the token's secret ends, by a rotation.
 *
 * The header is a constant and is compared as such, so that no other algorithm is ever considered. Pure.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

export const ACCESS_TOKEN_LIFETIME_MS = 15 * 60_000;
/** Between the clocks of two API processes. */
const CLOCK_DIFFERENCE_MS_MAX = 60_000;

/** The claims of an access token. */
export interface AccessClaims {
  readonly accountId: number;
  readonly credentialId: number;
  /** Of the secret that was exchanged ({@link secretTagOf}); absent in tokens of versions that did not write it. */
  readonly secretTag?: string | undefined;
  readonly isReadOnly: boolean;
  readonly scopes: readonly string[];
  readonly expiresAtMs: number;
}

const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');

const payload = z.object({
  account_id: z.int(),
  credential_id: z.int(),
  secret_tag: z.string().optional(),
  read_only: z.boolean(),
  scope: z.string(),
  exp: z.int(),
});

/** Identifies one secret of a token: 96 bits of its SHA-256, which name the secret and do not help to find it. */
export const secretTagOf = (secretHash: Buffer): string =>
  secretHash.subarray(0, 12).toString('base64url');

/** Makes the token; `issuedAtMs` counts to whole seconds, as the format has it. */
export function signAccessToken(
  secret: string,
  claims: Omit<AccessClaims, 'expiresAtMs'>,
  issuedAtMs: number,
): string {
  const issuedAt = Math.floor(issuedAtMs / 1000);
  const body = {
    iss: 'sluice',
    sub: `credential:${claims.credentialId}`,
    account_id: claims.accountId,
    credential_id: claims.credentialId,
    secret_tag: claims.secretTag,
    read_only: claims.isReadOnly,
    scope: claims.scopes.join(' '),
    iat: issuedAt,
    exp: issuedAt + ACCESS_TOKEN_LIFETIME_MS / 1000,
  };
  const signed = `${HEADER}.${Buffer.from(JSON.stringify(body)).toString('base64url')}`;
  return `${signed}.${sign(secret, signed).toString('base64url')}`;
}

/** True if it has the shape of an access token, even if another party made it. */
export const looksLikeAccessToken = (token: string): boolean => token.startsWith(`${HEADER}.`);

/** The claims of the token; undefined if we did not sign it or it has expired. */
export function readAccessToken(
  secret: string,
  token: string,
  nowMs: number,
): AccessClaims | undefined {
  const [header, body = '', signature = '', ...rest] = token.split('.');
  if (header !== HEADER || rest.length > 0) return undefined;
  // As text: decoding forgives padding, the other alphabet and bits beyond the last byte.
  const expected = Buffer.from(sign(secret, `${header}.${body}`).toString('base64url'));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  // Signed by us, so we wrote all of its content.
  const claims = payload.parse(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')));
  const expiresAtMs = claims.exp * 1000;
  // One from the future was issued before the clock of this machine was set back: it must not live longer for it.
  const issuedAtMs = expiresAtMs - ACCESS_TOKEN_LIFETIME_MS;
  if (nowMs >= expiresAtMs || nowMs < issuedAtMs - CLOCK_DIFFERENCE_MS_MAX) return undefined;
  return {
    accountId: claims.account_id,
    credentialId: claims.credential_id,
    secretTag: claims.secret_tag,
    isReadOnly: claims.read_only,
    scopes: claims.scope === '' ? [] : claims.scope.split(' '),
    expiresAtMs,
  };
}

/** Under a derived key, so that no other signature made with this secret is valid here. */
function sign(secret: string, text: string): Buffer {
  const key = createHmac('sha256', secret).update('access token').digest();
  return createHmac('sha256', key).update(text).digest();
}
