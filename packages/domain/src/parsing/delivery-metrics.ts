/**
 * Metrics of a message, reported from outside.
 *
 * They come by v1 `/metrics`, the older `/push/events`, v2 `delivery` events and Pipelines' 'Report Delivery Event'
 * (`ingestion-conventions.md` §1.6, §3.4).
 *
 * This file does not check whether a metric fits the channel: only the delivery has its channel.
 */
import { cleanKey, reportFlaws } from './clean-json.ts';
import { readRequiredText } from './identifiers.ts';
import { MESSAGE_CHANNELS } from '../delivery/reporting-event.ts';
import { ID_SIZE_BYTES_MAX, METRIC_TEXT_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { ReportMetric } from '../operations/operation.ts';
import { isAbsent, trimmed } from '../value-rules/verdict.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { isLongerThan, utf8SizeBytes } from '../values/storable-text.ts';

/** All that can be reported of a message. */
export const METRICS: ReadonlySet<string> = new Set([
  'bounced',
  'clicked',
  'converted',
  'deferred',
  'delivered',
  'dropped',
  'opened',
  'spammed',
]);

/** Metrics that the older push route and v2 deliveries may report. */
export const PUSH_METRICS: ReadonlySet<string> = new Set(['opened', 'converted', 'delivered']);

const CHANNELS: ReadonlySet<string> = new Set(MESSAGE_CHANNELS);

/** The parts of a report, with their places in the body. */
export interface MetricReport {
  readonly deliveryId: unknown;
  readonly deliveryIdField: string;
  readonly metric: unknown;
  readonly metricField: string;
  /** By default all eight. */
  readonly metrics?: ReadonlySet<string>;
  readonly channel?: unknown;
  readonly eventId: string;
  readonly occurredAtMs: number;
  /** Free texts: member of the operation → the value sent, and its path. */
  readonly texts: ReadonlyArray<readonly [MetricText, unknown, string]>;
}

export type MetricText =
  | 'recipient'
  | 'reason'
  | 'href'
  | 'deviceToken'
  | 'actionName'
  | 'actionValue';

/** Takes the report. */
export function takeMetric(draft: CallDraft, report: MetricReport): void {
  const { environmentId, receivedAtMs } = draft.context;
  const deliveryId = readRequiredText(
    draft,
    report.deliveryId,
    report.deliveryIdField,
    ID_SIZE_BYTES_MAX,
  );
  const metric = readOneOf(draft, report.metric, report.metricField, report.metrics ?? METRICS);
  if (metric === undefined && isAbsent(report.metric)) {
    draft.refuse('required', report.metricField, `${report.metricField} is required`);
  }
  const channel = readOneOf(draft, report.channel, 'channel', CHANNELS);
  if (deliveryId === undefined || metric === undefined) return;
  const { eventId, occurredAtMs } = report;
  const operation: { -readonly [Key in keyof ReportMetric]: ReportMetric[Key] } = {
    type: 'metric.report',
    environmentId,
    receivedAtMs,
    deliveryId,
    metric,
    occurredAtMs,
    eventId,
  };
  if (channel !== undefined) operation.channel = channel;
  for (const [member, value, field] of report.texts) {
    const text = readFreeText(draft, value, field);
    if (text !== undefined) operation[member] = text;
  }
  draft.take(operation);
}

/** `action_name` and `action_value` of an in-app click: v1 sends them under `metadata`. */
export function metadataTexts(metadata: unknown): MetricReport['texts'] {
  if (typeof metadata !== 'object' || metadata === null) return [];
  const { action_name: name, action_value: value } = metadata as Record<string, unknown>;
  return [
    ['actionName', name, fieldIn('metadata', 'action_name')],
    ['actionValue', value, fieldIn('metadata', 'action_value')],
  ];
}

function readOneOf(
  draft: CallDraft,
  value: unknown,
  field: string,
  choices: ReadonlySet<string>,
): string | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value === 'string' && choices.has(value)) return value;
  draft.refuse('invalid', field, `${field} must be one of ${[...choices].join(', ')}`, value);
  return undefined;
}

/** These texts are no keys of a look-up, so a character that cannot be stored is replaced. */
function readFreeText(draft: CallDraft, value: unknown, field: string): string | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== 'string' && !(typeof value === 'number' && Number.isFinite(value))) {
    draft.refuse('invalid', field, `${field} must be a string`, value);
    return undefined;
  }
  const text = cleanKey(draft, trimmed(String(value)));
  reportFlaws(draft, { [field]: value }, '');
  if (!isLongerThan(text, METRIC_TEXT_SIZE_BYTES_MAX)) return text;
  const sizeBytes = utf8SizeBytes(text);
  draft.refuse(
    'too_long',
    field,
    `${field} is ${sizeBytes} bytes long; the bound is ${METRIC_TEXT_SIZE_BYTES_MAX}`,
    text,
  );
  return undefined;
}
