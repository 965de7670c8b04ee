/**
 * Rights of a user in the console, by role. Keys of the app API have no roles, so for them the writes of a workspace
 * have no role either: here each has its least role.
 */
import { includesRole, type Role } from './account.ts';

/** Capability → the lowest role that has it. */
export const CAPABILITIES = {
  'workspace.read': 'member',
  /** To send a delivery again, to try a blocked one now, to send a test. All of these keep every delivery. */
  'deliveries.retry': 'member',
  /** A delivery that is skipped is not sent again by itself. */
  'deliveries.skip': 'account_admin',
  'deliveries.replay': 'account_admin',
  'webhooks.create': 'account_admin',
  'webhooks.edit': 'account_admin',
  /** The secrets that a webhook signs with. */
  'webhooks.rotate': 'account_admin',
  /** All other changes of a workspace: imports, deletion of webhooks, links to the portal. */
  'workspace.manage': 'account_admin',
  'billing.buy': 'billing_admin',
  'account.manage': 'account_admin',
} as const satisfies Record<string, Role>;

export type Capability = keyof typeof CAPABILITIES;

/** In the order of the table. */
export function capabilitiesOf(role: Role): Capability[] {
  return (Object.keys(CAPABILITIES) as Capability[]).filter((each) =>
    includesRole(role, CAPABILITIES[each]),
  );
}
