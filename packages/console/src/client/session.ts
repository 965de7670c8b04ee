/** The signed-in user and their rights, in the shape of `/console/me`. */
import { createContext, useContext } from 'react';

/** How a session was opened. */
export type SignInWay = 'code' | 'demo' | 'token' | 'provider';

/** As `packages/domain/src/accounts/capabilities.ts` has them, and the one that no role gives. */
export type Capability =
  | 'workspace.read'
  | 'deliveries.retry'
  | 'deliveries.skip'
  | 'deliveries.replay'
  | 'webhooks.create'
  | 'webhooks.edit'
  | 'webhooks.rotate'
  | 'workspace.manage'
  | 'billing.buy'
  | 'account.manage'
  /** Of the operator, by the account and no role. */
  | 'fleet.read';

export interface Session {
  /** In a session that a token opened: null, and the name of the token in place of an email. */
  readonly user: { readonly id: number | null; readonly email: string; readonly role: string };
  readonly account: { readonly id: number; readonly name: string; readonly timezone: string };
  readonly session: { readonly id: number; readonly way: SignInWay };
  readonly workspaces: readonly { readonly id: number; readonly name: string }[];
  readonly capabilities: readonly Capability[];
  /** Intake's address in the samples. */
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

/** The viewer of the screens of webhooks: a user of the workspace, or an engineer of its customer in the portal. */
export interface Reach {
  readonly workspaceId: number;
  readonly capabilities: readonly Capability[];
  /** Text for a button that may not be pressed. */
  readonly notAllowed: string;
  /** Event types that may be chosen for a webhook in the portal. */
  readonly eventTypes: readonly string[];
  /** True in the portal of an application: `eventTypes` are names of messages. */
  readonly isOfApplication: boolean;
  /** Only webhooks are there: no traces, no reference. */
  readonly isPortal: boolean;
}

export const ReachContext = createContext<Reach | undefined>(undefined);

/** @throws Error if there is no session. */
export function useReach(): Reach {
  const reach = useContext(ReachContext);
  if (!reach) throw new Error('a part is shown without a session');
  return reach;
}
