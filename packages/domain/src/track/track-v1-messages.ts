/**
 * Track v1 about messages: metrics of one, and the unsubscribe link (`ingestion-conventions.md` §1.1). Step 4 of the
 * walk, like `track-v1.ts`. They name a delivery, not a person.
 */
import { metadataTexts, PUSH_METRICS, takeMetric } from '../parsing/delivery-metrics.ts';
import { readRequiredText } from '../parsing/identifiers.ts';
import { ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import { CallDraft, isBodyObject, type ParseContext, type Parsed } from '../parsing/parse.ts';
import { isTrue } from '../value-rules/boolean-rule.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { pathDraft, readTimestamp } from './track-call.ts';

/** `POST /api/v1/metrics` */
export function parseMetric(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  if (!isBodyObject(draft, body)) return draft.finish();
  takeMetric(draft, {
    deliveryId: body.delivery_id,
    deliveryIdField: 'delivery_id',
    metric: body.metric,
    metricField: 'metric',
    channel: body.channel,
    eventId: context.newId(),
    occurredAtMs: readTimestamp(draft, body),
    texts: [
      ['recipient', body.recipient, 'recipient'],
      ['reason', body.reason, 'reason'],
      ['href', body.href, 'href'],
      ...metadataTexts(body.metadata),
    ],
  });
  return draft.finish();
}

/** `POST /api/v1/push/events` and `POST /push/events` */
export function parsePushEvent(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  if (!isBodyObject(draft, body)) return draft.finish();
  takeMetric(draft, {
    deliveryId: body.delivery_id,
    deliveryIdField: 'delivery_id',
    metric: body.event,
    metricField: 'event',
    metrics: PUSH_METRICS,
    channel: 'push',
    eventId: context.newId(),
    occurredAtMs: readTimestamp(draft, body),
    texts: [['deviceToken', body.device_id, 'device_id']],
  });
  return draft.finish();
}

/**
 * `POST /unsubscribe/{delivery_id}`, which needs no credentials. The delivery belongs to a workspace, so the caller
 * resolves it.
 */
export function parseUnsubscribe(deliveryId: string, body: unknown, context: ParseContext): Parsed {
  const draft = pathDraft(context);
  const id = readRequiredText(draft, deliveryId, 'delivery_id', ID_SIZE_BYTES_MAX);
  if (isBodyObject(draft, body) && !isTrue(body.unsubscribe)) {
    if (isAbsent(body.unsubscribe))
      draft.refuse('required', 'unsubscribe', 'unsubscribe is required');
    else draft.refuse('invalid', 'unsubscribe', 'unsubscribe must be true', body.unsubscribe);
  }
  const { environmentId, receivedAtMs } = context;
  if (id !== undefined)
    draft.take({ type: 'delivery.unsubscribe', environmentId, receivedAtMs, deliveryId: id });
  return draft.finish();
}
