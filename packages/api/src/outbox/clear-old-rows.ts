/**
 * Deletes old rows, a piece of each table at a time. So no table grows with time alone.
 * | rows | kept for | reason |
 * |---|---|---|
 * | answers of an `Idempotency-Key` | 7 days | `idempotency.ts` |
 * | counts of calls | a day | longer than any window of a limit |
 * | signups, sign-ins | 7 days | limits look a day back, and with a key a start may come again so long |
 * | console sessions, logins of programs, portal links, begun provider sign-ins | until over | their audit entries stay |
 * | sent entries of the outbox, applied events of the payment provider | 90 days | as below |
 * After 90 days a fact may be sent, or a provider's event come, once more without harm: the provider gets the present
 * state, `messageId` makes an analytics event count once, and the event's work is done. The provider resends an event
 * for 3 days, and keeps it for 30.
 */
import { clearCallCounts } from '@sluice/database/changes/call-counts';
import type { Database } from '@sluice/database/connection/connection';
import { clearIdempotencyKeys } from '@sluice/database/changes/idempotency-keys';
import { clearOutbox } from '@sluice/database/changes/outbox';
import { clearConsoleSessions } from '@sluice/database/users/console-sessions';
import { clearPortalLinks } from '@sluice/database/webhooks/portal-links';
import { clearDeviceLogins } from '@sluice/database/users/device-logins';
import { clearProviderSignIns } from '@sluice/database/users/provider-openings';
import { clearSignIns } from '@sluice/database/users/sign-in-codes';
import { clearSignups } from '@sluice/database/accounts/signups';
import { clearProviderEvents } from '@sluice/database/billing/provider-events';
import { IDEMPOTENCY_KEPT_MS } from '../http/idempotency.ts';

const DAY_MS = 86_400_000;
const ROWS_MAX = 10_000;
const COUNTS_KEPT_MS = DAY_MS;
const SIGNUPS_KEPT_MS = IDEMPOTENCY_KEPT_MS;
const FINISHED_KEPT_MS = 90 * DAY_MS;

/** At most 10,000 rows a table. May be run by several processes at the same time. */
export async function clearOldRows(database: Database, nowMs: number): Promise<void> {
  await clearIdempotencyKeys(database, nowMs - IDEMPOTENCY_KEPT_MS, ROWS_MAX);
  await clearCallCounts(database, nowMs - COUNTS_KEPT_MS, ROWS_MAX);
  await clearSignups(database, nowMs - SIGNUPS_KEPT_MS, ROWS_MAX);
  await clearSignIns(database, nowMs - SIGNUPS_KEPT_MS, ROWS_MAX);
  await clearConsoleSessions(database, ROWS_MAX);
  await clearProviderSignIns(database, ROWS_MAX);
  await clearDeviceLogins(database, ROWS_MAX);
  await clearPortalLinks(database, ROWS_MAX);
  await clearOutbox(database, nowMs - FINISHED_KEPT_MS, ROWS_MAX);
  await clearProviderEvents(database, nowMs - FINISHED_KEPT_MS, ROWS_MAX);
}
