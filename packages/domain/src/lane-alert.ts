/**
 * What a workspace is told of a webhook that cannot be sent to: two event types of the service's own
 * that webhooks may choose like any other, beside the registry.
 *
 * The webhook that fails is not told itself: it would get the news when it is none any more. And of
 * an alert that is given up no alert is made, or two dead endpoints would report each other for ever
 * (`database/src/lanes.ts` does not count it as given up).
 */
import type { JsonObject } from './json.ts';
import { ALERT_EVENT_TYPES, type AlertEventType, type ReportingEvent } from './reporting-event.ts';

export interface LaneAlert {
  readonly environmentId: number;
  readonly webhookId: number;
  readonly type: AlertEventType;
  readonly data: JsonObject;
}

const FAMILY = 'reporting_webhook';

/** The alert as it is logged to the other webhooks that chose it. */
export function alertEvent(alert: LaneAlert, eventId: string, nowMs: number): ReportingEvent {
  return {
    environmentId: alert.environmentId,
    eventId,
    eventType: alert.type,
    objectType: FAMILY,
    metric: alertMetric(alert.type),
    occurredAtMs: nowMs,
    exceptWebhookId: alert.webhookId,
    data: { reporting_webhook_id: alert.webhookId, ...alert.data },
  };
}

/** `failing` or `abandoned`. */
export function alertMetric(type: AlertEventType): string {
  return type.slice(FAMILY.length + 1);
}

export function isAlertEventType(type: string): type is AlertEventType {
  return (ALERT_EVENT_TYPES as readonly string[]).includes(type);
}
