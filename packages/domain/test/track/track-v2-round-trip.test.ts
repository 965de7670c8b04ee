/** parse(render(operation)) = operation, for everything that Track v2 can express. */
import type { JsonObject } from '@sluice/domain/values/json';
import type {
  ObjectIdentifier,
  Operation,
  PersonIdentifier,
} from '@sluice/domain/operations/operation';
import { parseEntity } from '@sluice/domain/track/track-v2';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  anonymous,
  anyObject,
  attributes,
  id,
  identifiersOf,
  name,
  objectIdentifiersOf,
  person,
  phone,
  someId,
} from '../support/call-parts.ts';
import { BASE, CONTEXT, onlyOperation } from '../support/parsing.ts';

/** The v2 body of an operation. */
function render(operation: Operation): JsonObject | undefined {
  const personOf = (named: PersonIdentifier) => ({
    type: 'person',
    identifiers: identifiersOf(named),
  });
  switch (operation.type) {
    case 'person.identify': {
      const {
        person: who,
        attributes: kept,
        anonymousId,
        mayCreate,
        attributesAtMs,
        relationships,
      } = operation;
      return {
        ...personOf(who),
        action: 'identify',
        attributes: {
          ...kept,
          ...(anonymousId === undefined ? {} : { anonymous_id: anonymousId }),
          ...(mayCreate ? {} : { _update: true }),
          ...(relationships === undefined
            ? {}
            : {
                svc_relationships: {
                  action: `${relationships.action}_relationships`,
                  relationships: relationships.entries.map(objectEntry),
                },
              }),
        },
        ...(attributesAtMs === undefined ? {} : { timestamp: attributesAtMs / 1_000 }),
      };
    }
    case 'person.delete':
    case 'person.suppress':
    case 'person.unsuppress':
      return { ...personOf(operation.person), action: operation.type.slice('person.'.length) };
    case 'person.merge':
      return {
        type: 'person',
        action: 'merge',
        primary: identifiersOf(operation.primary),
        secondary: identifiersOf(operation.secondary),
      };
    case 'person.relationships':
      return {
        ...personOf(operation.person),
        action: `${operation.action}_relationships`,
        svc_relationships: operation.entries.map(objectEntry),
      };
    case 'device.add': {
      const { token, platform, lastUsedAtMs, attributes: kept } = operation;
      const lastUsed = lastUsedAtMs === undefined ? {} : { last_used: lastUsedAtMs / 1_000 };
      return {
        ...personOf(operation.person),
        action: 'add_device',
        device: { token, platform, attributes: kept, ...lastUsed },
      };
    }
    case 'device.delete':
      return {
        ...personOf(operation.person),
        action: 'delete_device',
        device: { token: operation.token },
      };
    case 'event.track': {
      const { kind, person: who, name: called, eventId, data, occurredAtMs } = operation;
      if (who === null) return undefined;
      return {
        ...personOf(who),
        action: kind,
        name: called,
        id: eventId,
        attributes: data,
        timestamp: occurredAtMs / 1_000,
      };
    }
    case 'object.identify': {
      const { object: named, attributes: kept, relationships, attributesAtMs } = operation;
      return {
        type: 'object',
        action: 'identify',
        identifiers: objectIdentifiersOf(named),
        attributes: kept,
        cio_relationships: relationships.map(personEntry),
        ...(attributesAtMs === undefined ? {} : { timestamp: attributesAtMs / 1_000 }),
      };
    }
    case 'object.delete':
      return {
        type: 'object',
        action: 'delete',
        identifiers: objectIdentifiersOf(operation.object),
      };
    case 'object.relationships':
      return {
        type: 'object',
        action: `${operation.action}_relationships`,
        identifiers: objectIdentifiersOf(operation.object),
        cio_relationships: operation.entries.map(personEntry),
      };
    case 'metric.report':
      return {
        type: 'delivery',
        action: 'event',
        identifiers: { id: operation.deliveryId },
        name: operation.metric,
        id: operation.eventId,
        timestamp: operation.occurredAtMs / 1_000,
        attributes: { device_token: operation.deviceToken ?? null },
      };
    default:
      return undefined;
  }
}

const objectEntry = (entry: { object: ObjectIdentifier; attributes: JsonObject }) => ({
  identifiers: objectIdentifiersOf(entry.object),
  relationship_attributes: entry.attributes,
});
const personEntry = (entry: { person: PersonIdentifier; attributes: JsonObject }) => ({
  identifiers: identifiersOf(entry.person),
  relationship_attributes: entry.attributes,
});

const instantMs = fc.integer({ min: 100_000_000_000, max: BASE.receivedAtMs });
const anyone = fc.oneof(person, phone);
const anybody = fc.oneof(person, phone, anonymous);
const action = fc.constantFrom('add' as const, 'delete' as const);
const base = {
  environmentId: fc.constant(BASE.environmentId),
  receivedAtMs: fc.constant(BASE.receivedAtMs),
};
const objectEntries = fc.array(
  fc.record({ object: anyObject, attributes }, { noNullPrototype: true }),
  { minLength: 1, maxLength: 3 },
);
const personEntries = (minLength: number) =>
  fc.array(fc.record({ person: anybody, attributes }, { noNullPrototype: true }), {
    minLength,
    maxLength: 3,
  });

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record(
    {
      ...base,
      type: fc.constant('person.identify' as const),
      person: anyone,
      anonymousId: id,
      attributes,
      mayCreate: fc.boolean(),
      attributesAtMs: instantMs,
      relationships: fc.record({ action, entries: objectEntries }),
    },
    {
      requiredKeys: ['environmentId', 'receivedAtMs', 'type', 'person', 'attributes', 'mayCreate'],
    },
  ),
  fc.record({
    ...base,
    type: fc.constantFrom(
      'person.delete' as const,
      'person.suppress' as const,
      'person.unsuppress' as const,
    ),
    person: anyone,
  }),
  fc.record({
    ...base,
    type: fc.constant('person.merge' as const),
    primary: person,
    secondary: person,
  }),
  fc.record({
    ...base,
    type: fc.constant('person.relationships' as const),
    person: anyone,
    action,
    entries: objectEntries,
  }),
  fc.record(
    {
      ...base,
      type: fc.constant('device.add' as const),
      person: anyone,
      token: someId,
      platform: fc.constantFrom('ios', 'android'),
      lastUsedAtMs: instantMs,
      attributes,
    },
    {
      requiredKeys: [
        'environmentId',
        'receivedAtMs',
        'type',
        'person',
        'token',
        'platform',
        'attributes',
      ],
    },
  ),
  fc.record({
    ...base,
    type: fc.constant('device.delete' as const),
    person: anyone,
    token: someId,
  }),
  fc.record({
    ...base,
    type: fc.constant('event.track' as const),
    kind: fc.constantFrom('event' as const, 'page' as const, 'screen' as const),
    person: anybody,
    eventId: someId,
    name,
    data: attributes,
    occurredAtMs: instantMs,
  }),
  fc.record(
    {
      ...base,
      type: fc.constant('object.identify' as const),
      object: anyObject,
      attributes,
      relationships: personEntries(0),
      attributesAtMs: instantMs,
    },
    {
      requiredKeys: [
        'environmentId',
        'receivedAtMs',
        'type',
        'object',
        'attributes',
        'relationships',
      ],
    },
  ),
  fc.record({ ...base, type: fc.constant('object.delete' as const), object: anyObject }),
  fc.record({
    ...base,
    type: fc.constant('object.relationships' as const),
    object: anyObject,
    action,
    entries: personEntries(1),
  }),
  fc.record({
    ...base,
    type: fc.constant('metric.report' as const),
    deliveryId: someId,
    metric: fc.constantFrom('opened', 'converted', 'delivered'),
    channel: fc.constant('push'),
    deviceToken: someId,
    occurredAtMs: instantMs,
    eventId: someId,
  }),
);

test('an operation written as a v2 call is read back as the same operation', () => {
  fc.assert(
    fc.property(operation, (meant) => {
      const body: unknown = JSON.parse(JSON.stringify(render(meant)));
      const parsed = parseEntity(body, { ...CONTEXT, phoneIdentifies: true });
      expect(onlyOperation(parsed)).toStrictEqual(JSON.parse(JSON.stringify(meant)));
    }),
    { numRuns: 1_000 },
  );
});
