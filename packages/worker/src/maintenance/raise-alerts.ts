/**
 * Reports failing webhooks and abandoned deliveries to their workspaces: once an episode, to the webhooks of the
 * workspace that chose these events.
 *
 * Run it every few seconds on any number of workers. The alert is logged in the transaction that marks the episode as
 * reported (`database/src/delivery/lane-alerts.ts`), and it is sent like any other delivery.
 */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import {
  listUntoldEnvironments,
  takeUntold,
  type UntoldLane,
} from '@sluice/database/delivery/lane-alerts';
import { alertEvent, type LaneAlert } from '@sluice/domain/delivery/lane-alert';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Logger } from '@sluice/platform/process/logger';
import { eachAlone } from '../process/each-alone.ts';

export interface RaiseAlertsDeps {
  readonly database: Database;
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  /** How long after its first failure a lane is reported. */
  readonly alertAfterMs: number;
  /** Makes ULIDs. */
  readonly newId: () => string;
  readonly now: () => number;
  readonly logger: Logger;
}

const ENVIRONMENTS_MAX = 500;

/** @returns how many alerts were raised, whether anybody chose them or not. */
export async function raiseAlerts(deps: RaiseAlertsDeps): Promise<number> {
  const nowMs = deps.now();
  const sinceBeforeMs = nowMs - deps.alertAfterMs;
  let count = 0;
  const woken: LaneKey[] = [];
  const environments = await listUntoldEnvironments(deps.database, sinceBeforeMs, ENVIRONMENTS_MAX);
  const keys = environments.map((environmentId) => ({ environmentId }));
  await eachAlone(deps.logger, 'raise alerts', keys, async ({ environmentId }) => {
    const told = await deps.database.transaction().execute(async (transaction) => {
      const untold = await takeUntold(transaction, environmentId, sinceBeforeMs);
      const alerts = untold.flatMap((lane) => alertsOf(environmentId, lane));
      const events = alerts.map((alert) => alertEvent(alert, deps.newId(), nowMs));
      return { alerts, lanes: await appendDeliveries(transaction, events) };
    });
    count += told.alerts.length;
    woken.push(...told.lanes);
  });
  await Promise.all(woken.map((lane) => deps.wakeLane(lane)));
  return count;
}

function alertsOf(environmentId: number, lane: UntoldLane): LaneAlert[] {
  const { webhookId, name, abandoned } = lane;
  const about = { environmentId, webhookId };
  const alerts: LaneAlert[] = [];
  if (lane.isFailureDue) {
    alerts.push({
      ...about,
      type: 'reporting_webhook_failing',
      data: {
        name,
        failing_since: toSeconds(lane.failingSince),
        next_probe_at: toSeconds(lane.nextProbeAt),
        unfinished_count: lane.unfinishedCount,
      },
    });
  }
  if (lane.isAbandonmentDue) {
    alerts.push({
      ...about,
      type: 'reporting_webhook_abandoned',
      data: {
        name,
        delivery: abandoned && {
          sequence: abandoned.sequence,
          event_id: abandoned.eventId,
          event_type: abandoned.eventType,
          attempts: abandoned.attempts,
          status: abandoned.status,
          failure: abandoned.failure,
          failure_message: abandoned.failureMessage,
        },
      },
    });
  }
  return alerts;
}

const toSeconds = (date: Date | null): number | null => date && Math.floor(date.getTime() / 1000);
