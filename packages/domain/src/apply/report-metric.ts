/**
 * Turns a reported metric of a message into a reporting event.
 *
 * Rules: `ingestion-conventions.md` §1.6, §3.4. The message's data are stored for later calls that name it.
 *
 * The channel is the one of the delivery if it is known, else the one in the call, else email. The person is the one
 * behind the delivery, else the one with the recipient's email.
 */
import { unsubscribe } from './change-attributes.ts';
import type { JsonObject } from '../values/json.ts';
import type { ReportMetric, UnsubscribeDelivery } from '../operations/operation.ts';
import { loaded, type LoadedPerson } from '../state/person-directory.ts';
import { identifiersOf } from '../reports/person-report.ts';
import {
  isMessageChannel,
  isReportingEventType,
  type MessageChannel,
} from '../delivery/reporting-event.ts';
import type { MessageDeliveryRow } from '../state/loaded-state.ts';
import { eventText } from '../operations/state-keys.ts';
import { takeEventOnce } from './track-event.ts';
import type { WorkingSet } from '../state/working-set.ts';

const FAILURES: ReadonlySet<string> = new Set([
  'attempted',
  'bounced',
  'deferred',
  'dropped',
  'failed',
  'undeliverable',
]);

/** Applies one reported metric; recorded if the channel has no such metric. */
export function reportMetric(set: WorkingSet, operation: ReportMetric): void {
  const { environmentId, deliveryId, metric, receivedAtMs } = operation;
  const known = set.messageDeliveries.get(eventText(environmentId, deliveryId));
  const channel = channelOf(known?.channel ?? operation.channel);
  const eventType = `${channel}_${metric}`;
  if (!isReportingEventType(eventType)) {
    set.addIssue(operation, {
      code: 'unsupported',
      field: 'metric',
      message: `Messages of the channel ${channel} have no metric "${metric}".`,
      sample: metric,
    });
    return;
  }
  if (!takeEventOnce(set, operation, operation.eventId)) return;
  const person = personBehind(set, operation, known);
  const recipient = operation.recipient ?? known?.recipient ?? null;
  const personId = person?.personId ?? null;
  if (!known || known.recipient !== recipient || known.personId !== personId) {
    const createdAtMs = known?.createdAtMs ?? receivedAtMs;
    set.messageDeliveries.set({
      environmentId,
      deliveryId,
      channel,
      recipient,
      personId,
      createdAtMs,
    });
  }
  set.addReport({
    environmentId,
    eventId: set.effects.newId(),
    causeEventId: operation.eventId,
    ...(operation.envelopeNumber !== undefined && { envelopeNumber: operation.envelopeNumber }),
    eventType,
    objectType: channel,
    metric,
    occurredAtMs: operation.occurredAtMs,
    ...(person ? { personId: person.personId } : {}),
    ...(metric === 'opened' || metric === 'clicked'
      ? { engagement: { deliveryId, link: metric === 'clicked' ? (operation.href ?? '') : '' } }
      : {}),
    data: dataOf(operation, channel, recipient, person),
  });
}

/** Unsubscribes the person behind a message; recorded if the message or the person is unknown. */
export function unsubscribeDelivery(set: WorkingSet, operation: UnsubscribeDelivery): void {
  const { environmentId, deliveryId } = operation;
  const known = set.messageDeliveries.get(eventText(environmentId, deliveryId));
  const person =
    known?.personId == null ? undefined : set.directory.find(environmentId, known.personId);
  if (known && person) {
    unsubscribe(set, operation, loaded(person), channelOf(known.channel));
  } else {
    set.addIssue(operation, {
      code: 'person_not_found',
      field: 'delivery_id',
      message: `No person is known for the delivery "${deliveryId}"; no person was unsubscribed. Check the id.`,
      sample: deliveryId,
    });
  }
}

function channelOf(channel: string | undefined): MessageChannel {
  return channel !== undefined && isMessageChannel(channel) ? channel : 'email';
}

function personBehind(
  set: WorkingSet,
  operation: ReportMetric,
  known: MessageDeliveryRow | undefined,
): LoadedPerson | undefined {
  const { environmentId, recipient } = operation;
  const behind =
    known?.personId == null ? undefined : set.directory.find(environmentId, known.personId);
  if (behind) return loaded(behind);
  if (!recipient?.includes('@')) return undefined;
  const owner = set.directory.resolveStored(environmentId, 'email', recipient);
  return owner.outcome === 'found' && !owner.person.isFormer ? loaded(owner.person) : undefined;
}

/** The members of `ingestion-conventions.md` §4.3 and §4.4 that a metric call contains. */
function dataOf(
  operation: ReportMetric,
  channel: MessageChannel,
  recipient: string | null,
  person: LoadedPerson | undefined,
): JsonObject {
  const { metric, deliveryId, reason, href, deviceToken } = operation;
  const data: JsonObject = {
    delivery_id: deliveryId,
    customer_id: person?.row.id ?? '',
    identifiers: person ? identifiersOf(person.row) : { id: null, email: null },
  };
  // A push message that was not delivered also sets the device's status.
  const isOfDevice =
    channel === 'push' &&
    deviceToken !== undefined &&
    (metric === 'bounced' || metric === 'dropped');
  if (channel === 'push') {
    if (deviceToken !== undefined) {
      const device: JsonObject = { device_id: deviceToken };
      if (isOfDevice && reason !== undefined) device['failure_message'] = reason;
      data['recipients'] = [device];
    }
  } else if (recipient !== null) {
    data['recipient'] = recipient;
  }
  if (metric === 'clicked' && href !== undefined) data['href'] = href;
  if (FAILURES.has(metric) && reason !== undefined && !isOfDevice) data['failure_message'] = reason;
  return data;
}
