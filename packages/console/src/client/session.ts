/** The user who is signed in, and what the user may do; the shape of `/console/me`. */
import { createContext, useContext } from 'react';

/** As `packages/domain/src/accounts/capabilities.ts` has them. */
export type Capability =
  | 'workspace.read'
  | 'deliveries.retry'
  | 'workspace.manage'
  | 'billing.buy'
  | 'account.manage';

export interface Session {
  /** In a session that a token opened: null, and the name of the token in place of an email. */
  readonly user: { readonly id: number | null; readonly email: string; readonly role: string };
  readonly account: { readonly id: number; readonly name: string; readonly timezone: string };
  readonly session: { readonly id: number; readonly way: 'code' | 'demo' | 'token' };
  readonly workspaces: readonly { readonly id: number; readonly name: string }[];
  readonly capabilities: readonly Capability[];
  /** Where the samples send to. */
  readonly intake_url: string;
}

export interface SessionState extends Session {
  /** The workspace that the screens show. */
  readonly workspaceId: number;
  readonly signOut: () => void;
}

export const SessionContext = createContext<SessionState | undefined>(undefined);

/** @throws Error outside the signed-in part of the page. */
export function useSession(): SessionState {
  const session = useContext(SessionContext);
  if (!session) throw new Error('a screen is shown without a session');
  return session;
}
