/**
 * Disables webhooks that have failed for their chosen number of days. It reports each to the workspace: in the audit
 * log, and to the other webhooks that chose `reporting_webhook_disabled`. Each is one transaction, so that it is
 * reported once.
 */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { disableOverdue, listOverdueWebhooks } from '@sluice/database/webhooks/failing-webhooks';
import { alertEvent } from '@sluice/domain/delivery/lane-alert';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Logger } from '@sluice/platform/process/logger';
import { eachAlone } from '../process/each-alone.ts';

export interface DisableFailingDeps {
  readonly database: Database;
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  /** Makes ULIDs. */
  readonly newId: () => string;
  readonly now: () => number;
  readonly logger: Logger;
}

/** A run; the others have their turn at the next one, a minute later. */
const WEBHOOKS_MAX = 500;

/** May be run by several workers at once. @returns how many were disabled. */
export async function disableFailing(deps: DisableFailingDeps): Promise<number> {
  const { database, logger, newId } = deps;
  const nowMs = deps.now();
  const woken: LaneKey[] = [];
  let count = 0;
  const overdue = await listOverdueWebhooks(database, nowMs, WEBHOOKS_MAX);
  await eachAlone(logger, 'disable failing webhooks', overdue, async (lane) => {
    const told = await database.transaction().execute(async (transaction) => {
      const disabled = await disableOverdue(transaction, lane, nowMs);
      if (!disabled) return undefined;
      const { name, days, failingSince } = disabled;
      const failingSinceSeconds = Math.floor(failingSince.getTime() / 1_000);
      const alert = {
        ...lane,
        type: 'reporting_webhook_disabled',
        data: { name, failing_since: failingSinceSeconds, after_days: days },
      } as const;
      return appendDeliveries(transaction, [alertEvent(alert, newId(), nowMs)]);
    });
    if (!told) return;
    count++;
    woken.push(...told);
  });
  await Promise.all(woken.map((lane) => deps.wakeLane(lane)));
  return count;
}
