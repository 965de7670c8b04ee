/**
 * Random items that change or remove data of others: semantic events of Pipelines, and the same as entities of Track
 * v2.
 */
import fc from 'fast-check';
import { DELIVERIES, OBJECTS, type MakeBody, type Names } from './generate-items.ts';
import { personOrVisitor } from './generate-relations.ts';
import type { Body } from './model/call.ts';

const tokenOf = (name: string): string => `${name.toLowerCase()}-t`.replace(/~[pa]|#/, '~d');

/** Track calls whose name is a command. */
export function semanticEvent(names: Names): fc.Arbitrary<MakeBody> {
  const { any, email } = names;
  const ofPerson = fc
    .tuple(
      any,
      fc.constantFrom(
        'User Deleted',
        'Delete Person',
        'User Suppressed',
        'Suppress Person',
        'User Unsuppressed',
        'Unsuppress Person',
      ),
    )
    .map(([userId, event]) => () => ({ type: 'track', userId, event }));
  const ofDevice = fc
    .tuple(
      personOrVisitor(names),
      fc.constantFrom(
        'Device Created or Updated',
        'Device Created or Updated',
        'Device Deleted',
        'Application Opened',
        'Application Uninstalled',
      ),
    )
    .map(([ids, event]) => (number: number) => ({
      type: 'track',
      ...ids,
      event,
      properties: event === 'Device Deleted' ? {} : { v: String(number) },
      context: {
        device: {
          token: tokenOf((ids['userId'] ?? ids['anonymousId']) as string),
          type: 'android',
        },
      },
    }));
  const ofRelationship = fc
    .tuple(
      personOrVisitor(names),
      OBJECTS,
      fc.constantFrom('Relationship Deleted', 'Relationship Deleted', 'Object Deleted'),
    )
    .map(([ids, objectId, event]) => () => ({
      type: 'track',
      ...ids,
      event,
      properties: { objectId },
    }));
  const ofMessage = fc
    .tuple(any, DELIVERIES, email)
    .map(([userId, deliveryId, recipient]) => () => ({
      type: 'track',
      userId,
      event: 'Report Delivery Event',
      properties: { deliveryId, metric: 'delivered', recipient },
    }));
  return fc.oneof(
    { weight: 2, arbitrary: ofPerson },
    { weight: 3, arbitrary: ofDevice },
    { weight: 2, arbitrary: ofRelationship },
    { weight: 1, arbitrary: ofMessage },
  ) as fc.Arbitrary<MakeBody>;
}

/** Entities that remove a person, free their names, or change their devices; and the end of an object. */
export function commandItem({ withPhone, anonymous }: Names): fc.Arbitrary<MakeBody> {
  const ofPerson = fc
    .tuple(withPhone, fc.constantFrom('delete', 'delete', 'suppress', 'unsuppress', 'unsuppress'))
    .map(([identifiers, action]) => () => ({ type: 'person', action, identifiers }));
  const ofDevice = fc
    .tuple(
      fc.oneof(
        { weight: 3, arbitrary: withPhone },
        { weight: 1, arbitrary: anonymous.map((each): Body => ({ anonymous_id: each })) },
      ),
      fc.constantFrom('add_device', 'add_device', 'delete_device'),
    )
    .map(([identifiers, action]) => (number: number) => {
      const token = tokenOf(Object.values(identifiers)[0] as string);
      const added = { token, platform: 'ios', attributes: { v: String(number) } };
      const device = action === 'add_device' ? added : { token };
      return { type: 'person', action, identifiers, device };
    });
  const ofObject = OBJECTS.map((object_id) => () => ({
    type: 'object',
    action: 'delete',
    identifiers: { object_type_id: '1', object_id },
  }));
  const ofMessage = DELIVERIES.map((id) => () => ({
    type: 'delivery',
    action: 'event',
    identifiers: { id },
    name: 'opened',
  }));
  return fc.oneof(
    { weight: 4, arbitrary: ofPerson },
    { weight: 3, arbitrary: ofDevice },
    { weight: 1, arbitrary: ofObject },
    { weight: 1, arbitrary: ofMessage },
  ) as fc.Arbitrary<MakeBody>;
}
