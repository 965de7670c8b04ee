/** Times of billing are in the account's zone, for every viewer: a period that ends on a day ends on it for all. */
import type { ReactNode } from 'react';
import { useSession } from '../client/session.ts';
import { ZoneContext } from '../parts/time.tsx';

export function AccountZone({ children }: { readonly children: ReactNode }) {
  const { account } = useSession();
  return <ZoneContext.Provider value={account.timezone}>{children}</ZoneContext.Provider>;
}

export function ZoneLead() {
  const { account } = useSession();
  return <p className="lead">Times are in the zone of the account, {account.timezone}.</p>;
}
