/**
 * Trusted claims of an identity provider about a person. Its signature, audience, times and nonce were checked before.
 *
 * The email leads to a user the first time, so it must be verified, and of a domain that the account has proved to be
 * its own. Microsoft Entra sends `xms_edov` in place of `email_verified`: true if the directory has proved the domain.
 * Without either an administrator of any directory could name any address. From any other provider `xms_edov` has no
 * meaning: it may be an attribute that its users fill themselves. Google vouches for any address that was verified
 * once. That includes accounts outside the domain (`hd` names the domain of an account), and people who have left it.
 */

/** The claims that count, as the provider sent them. */
export interface PersonClaims {
  readonly email?: unknown;
  readonly email_verified?: unknown;
  readonly xms_edov?: unknown;
  readonly hd?: unknown;
}

export type ClaimsVerdict =
  | { readonly outcome: 'accepted'; readonly email: string }
  | { readonly outcome: 'refused'; readonly reason: 'no_email' | 'unverified' | 'other_domain' };

/** The context of an encrypted client secret. It is encrypted into the text, so that it opens for no other account. */
export const clientSecretContext = (accountId: number): string =>
  `identity provider of account ${accountId}`;

/** @returns in lower case; empty if the text has no domain. */
export const domainOfEmail = (email: string): string =>
  email.slice(email.lastIndexOf('@') + 1).toLowerCase();

/** With the slash that an issuer may be written with. */
const GOOGLE = /^https:\/\/accounts\.google\.com\/?$/;
/**
 * The clouds of Microsoft Entra: the worldwide one, the one for the government of the United States, the one in China.
 */
const ENTRA =
  /^https:\/\/login\.(?:microsoftonline\.com|microsoftonline\.us|partner\.microsoftonline\.cn)\//;

/** @param provider.issuer - as URL parsing writes it, with or without the slash of an empty path. @param provider.emailDomains - in lower case; a subdomain is another domain. */
export function judgeClaims(
  { email, email_verified: isVerified, xms_edov: isOwned, hd: hostedDomain }: PersonClaims,
  { issuer, emailDomains }: { readonly issuer: string; readonly emailDomains: readonly string[] },
): ClaimsVerdict {
  if (typeof email !== 'string' || !email.includes('@'))
    return { outcome: 'refused', reason: 'no_email' };
  // An address that the provider reports as not verified stays so, even if the account owns its domain.
  const isOwn = isVerified === undefined && ENTRA.test(issuer) && isSaid(isOwned);
  if (!isSaid(isVerified) && !isOwn) return { outcome: 'refused', reason: 'unverified' };
  const domains = [domainOfEmail(email), ...(GOOGLE.test(issuer) ? [hostedDomain] : [])];
  if (!domains.every((domain) => emailDomains.some((each) => each === domain)))
    return { outcome: 'refused', reason: 'other_domain' };
  return { outcome: 'accepted', email };
}

/** Some providers send booleans as text, and Entra sends 1. */
const isSaid = (claim: unknown): boolean =>
  claim === true || claim === 'true' || claim === 1 || claim === '1';
