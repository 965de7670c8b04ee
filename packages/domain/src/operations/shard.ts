/**
 * Shard of an operation. A shard's commit batches are processed one after another. So operations with the same key,
 * such as one person's calls, apply in the order in which they were taken.
 *
 * The hash is part of the stored state: commit batches wait in their shard's queue across a deploy, and a
 * person who moved could overtake themselves. It must never change; a test pins its values.
 *
 * The price: two identifiers of one person (id and email) may be in two shards, so the worker may meet the same
 * person from two sides and must lock. And an operation about an object is ordered by that object, not by the people
 * it names: many people write to one object and the last must win, while it does not matter which operation makes a
 * person.
 */
import { foldEmail } from '../value-rules/identifier-rule.ts';
import type { ObjectIdentifier, Operation, PersonIdentifier, ReportMetric } from './operation.ts';
import { unitAt } from '../values/unit-at.ts';

/** The shard of a key. */
export function shardOf(environmentId: number, key: string, shardCount: number): number {
  return keyHashOf(environmentId, key) % shardCount;
}

/**
 * The hash of a key, 0 to 2^32 - 1: FNV-1a (32 bit) over the workspace's number and the key's UTF-16 units, low byte
 * first, mixed by MurmurHash3's finaliser because FNV's low bits alone are poor for small counts.
 */
export function keyHashOf(environmentId: number, key: string): number {
  let hash = 0x811c9dc5;
  for (let shift = 0; shift < 32; shift += 8) {
    hash = Math.imul(hash ^ ((environmentId >>> shift) & 0xff), 0x01000193);
  }
  for (let index = 0; index < key.length; index++) {
    const unit = unitAt(key, index);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** The subject by which operations are ordered: the object if it is about one, else its person, else its message. */
export function shardKeyOf(operation: Operation): string {
  switch (operation.type) {
    case 'person.identify':
    case 'person.delete':
    case 'person.suppress':
    case 'person.unsuppress':
    case 'person.relationships':
    case 'device.add':
    case 'device.delete':
    case 'form.submit':
      return personKey(operation.person);
    case 'person.merge':
      return personKey(operation.primary);
    case 'event.track':
      return operation.person === null ? operation.eventId : personKey(operation.person);
    case 'object.identify':
    case 'object.relationships':
    case 'object.delete':
      return objectKey(operation.object);
    case 'metric.report':
      // Else reports of many messages to one person meet in no shard, and wait for each other in all.
      return recipientKey(operation) ?? deliveryKey(operation);
    case 'delivery.unsubscribe':
      return deliveryKey(operation);
    case 'message.publish':
      // Messages of one application are logged in their order; all others are spread.
      return `publish:${operation.application ?? operation.eventId}`;
    case 'segment.change':
      return `segment:${operation.segmentId}`;
    case 'issue.record':
      return `issue:${operation.issue.code}:${operation.issue.field ?? ''}`;
  }
}

/** The key of a person's identifier. The kind is left out, so that an id that looks like an email meets the email. */
export function personKey(person: PersonIdentifier): string {
  return person.kind === 'email' ? foldEmail(person.value) : person.value;
}

/** The key of a message. */
export const deliveryKey = ({ deliveryId }: Pick<ReportMetric, 'deliveryId'>): string =>
  `delivery:${deliveryId}`;

/** The key of the person with the email address to which a message was sent, if it was sent to one. */
const recipientKey = ({ recipient }: Pick<ReportMetric, 'recipient'>): string | undefined =>
  recipient?.includes('@') ? foldEmail(recipient) : undefined;

/** The key of an object. */
export function objectKey(object: ObjectIdentifier): string {
  return 'svcObjectId' in object
    ? `object:${object.svcObjectId}`
    : `object:${object.objectTypeId}:${object.objectId}`;
}
