/**
 * Alerts about an unreachable webhook. Webhooks may choose these event types like any other, beside the registry.
 *
 * The failing webhook does not receive the alert: it could arrive only once the webhook works again. An alert that is
 * given up makes no alert, or two dead endpoints would report each other for ever (`database/src/delivery/lanes.ts`
 * does not count it as given up).
 */
import type { JsonObject } from '../values/json.ts';
import { splitOwnEventType, type AlertEventType, type ReportingEvent } from './reporting-event.ts';

export interface LaneAlert {
  readonly environmentId: number;
  readonly webhookId: number;
  readonly type: AlertEventType;
  readonly data: JsonObject;
}

/** The alert as it is logged to the other webhooks that chose it. */
export function alertEvent(alert: LaneAlert, eventId: string, nowMs: number): ReportingEvent {
  const { family, metric } = splitOwnEventType(alert.type);
  return {
    environmentId: alert.environmentId,
    eventId,
    eventType: alert.type,
    objectType: family,
    metric,
    occurredAtMs: nowMs,
    exceptWebhookId: alert.webhookId,
    data: { reporting_webhook_id: alert.webhookId, ...alert.data },
  };
}
