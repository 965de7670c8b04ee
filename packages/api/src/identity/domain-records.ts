/**
 * The proof that an email domain is an account's: a TXT record that names the account, which only the domain's owner can
 * set. Without it an account could name the domain of others, and its provider would vouch for their addresses.
 *
 * The record's text is made from `API_SECRET`, so that it is no proof for another installation.
 */
import { createHmac } from 'node:crypto';
import type { Resolver } from 'node:dns/promises';

/** @returns the texts of the TXT records at the name; empty if there is no such name. @throws if no server answers. */
export type ReadTextRecords = (name: string) => Promise<readonly string[]>;

/** Before the domain; it also names the record's purpose. */
const LABEL = '_sluice';

export const domainRecordName = (domain: string): string => `${LABEL}.${domain}`;

export function domainRecordText(secret: string, accountId: number): string {
  const key = createHmac('sha256', secret).update('email domains').digest();
  const proof = createHmac('sha256', key).update(String(accountId)).digest('hex').slice(0, 32);
  return `sluice-account-${accountId}=${proof}`;
}

export const readTextRecordsBy =
  (resolver: Pick<Resolver, 'resolveTxt'>): ReadTextRecords =>
  async (name) => {
    try {
      return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
      throw error;
    }
  };
