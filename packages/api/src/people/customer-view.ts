/** A person with its devices on the wire, and the schemas. Pure. */
import type { ActivityRow } from '@sluice/database/people/activity-reads';
import type {
  PersonDevice,
  PersonProfile,
  PersonRelationshipRow,
} from '@sluice/database/people/customer-reads';
import { isJsonObject, setKey, type Json, type JsonObject } from '@sluice/domain/values/json';
import { PREFERENCES_ATTRIBUTE } from '@sluice/domain/parsing/read-preferences';
import { svcId, svcObjectId } from '@sluice/domain/values/svc-id';
import { z } from 'zod';

/** `z.record` would drop a client's key named `__proto__`. */
export const jsonObject = z
  .custom<JsonObject>(isJsonObject)
  .meta({ type: 'object', additionalProperties: true });

export const textValues = z
  .custom<Record<string, string>>(
    (value) =>
      isJsonObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  )
  .meta({ type: 'object', additionalProperties: { type: 'string' } });

export const customerIdentifiers = z
  .object({
    id: z.string().nullable(),
    email: z.string().nullable(),
    svc_id: z.string(),
    cio_id: z.string().meta({ description: 'The same as `svc_id`.' }),
  })
  .meta({ id: 'CustomerIdentifiers' });

const device = z.object({
  id: z.string().meta({ description: "The device's token." }),
  platform: z.string(),
  last_used: z.int().nullable().meta({ description: 'Unix seconds.' }),
  attributes: jsonObject,
});

export const customer = z
  .object({
    id: z.string().nullable(),
    identifiers: customerIdentifiers,
    attributes: textValues.meta({
      description:
        'Every value is text: numbers and booleans as in JSON, lists and objects as JSON text.',
    }),
    timestamps: z.record(z.string(), z.int()).meta({
      description: 'Deprecated. When the person was first seen, under `svc_id` and `cio_id`.',
    }),
    unsubscribed: z.boolean(),
    devices: z.array(device),
  })
  .meta({ id: 'Customer', description: 'A person.' });

export const activity = z
  .object({
    id: z.string(),
    type: z.string().meta({ description: '`event`, `page`, `screen`, `attribute_change`, …' }),
    name: z.string().nullable(),
    timestamp: z.int().meta({ description: 'Unix seconds.' }),
    data: jsonObject,
    customer_id: z.string().nullable(),
    customer_identifiers: customerIdentifiers,
  })
  .meta({
    id: 'Activity',
    description: 'Something that a person did, or that changed about them.',
  });

export const relationship = z
  .object({
    object_type_id: z.int(),
    identifiers: z.object({
      object_type_id: z.string().meta({ description: 'As Track takes it: an integer as text.' }),
      object_id: z.string(),
      svc_object_id: z.string(),
      cio_object_id: z.string().meta({ description: 'The same as `svc_object_id`.' }),
    }),
    attributes: jsonObject,
    timestamps: z
      .record(z.string(), z.int())
      .meta({ description: 'When it was made, under `created_at`.' }),
  })
  .meta({ id: 'Relationship', description: 'An object that a person is related to.' });

export function toIdentifiers(person: PersonProfile): z.infer<typeof customerIdentifiers> {
  const ownId = svcId(Number(person.personId));
  return { id: person.id, email: person.email, svc_id: ownId, cio_id: ownId };
}

export function toCustomer(
  person: PersonProfile,
  devices: readonly PersonDevice[],
): z.infer<typeof customer> {
  const identifiers = toIdentifiers(person);
  const createdAt = toUnixSeconds(person.createdAt);
  return {
    id: person.id,
    identifiers,
    attributes: toTexts({
      ...person.attributes,
      ...withoutNull({
        id: person.id,
        email: person.email,
        phone: person.phone,
        unsubscribed: person.unsubscribed,
      }),
      svc_id: identifiers.svc_id,
      cio_id: identifiers.cio_id,
    }),
    timestamps: { svc_id: createdAt, cio_id: createdAt },
    unsubscribed: person.unsubscribed ?? false,
    devices: devices.map((each) => ({
      id: each.token,
      platform: each.platform,
      last_used: each.lastUsedAt && toUnixSeconds(each.lastUsedAt),
      attributes: each.attributes,
    })),
  };
}

export const toActivity = (row: ActivityRow, person: PersonProfile): z.infer<typeof activity> => ({
  id: row.eventId,
  type: row.kind,
  name: row.name,
  timestamp: Number(BigInt(row.occurredAtMicros) / 1_000_000n),
  data: row.data,
  customer_id: person.id,
  customer_identifiers: toIdentifiers(person),
});

export function toRelationship(row: PersonRelationshipRow): z.infer<typeof relationship> {
  const ownId = svcObjectId(Number(row.objectNumber));
  return {
    object_type_id: row.objectTypeId,
    identifiers: {
      object_type_id: String(row.objectTypeId),
      object_id: row.objectId,
      svc_object_id: ownId,
      cio_object_id: ownId,
    },
    attributes: row.attributes,
    timestamps: { created_at: toUnixSeconds(row.createdAt) },
  };
}

/** Texts as they are, everything else as JSON; the preferences under their alias too. */
export function toTexts(attributes: JsonObject): Record<string, string> {
  const texts: JsonObject = {};
  for (const [name, value] of Object.entries(attributes)) {
    const shown = typeof value === 'string' ? value : JSON.stringify(value);
    setKey(texts, name, shown);
    if (name === PREFERENCES_ATTRIBUTE)
      texts[PREFERENCES_ATTRIBUTE.replace('svc_', 'cio_')] = shown;
  }
  return texts as Record<string, string>;
}

function withoutNull(values: Readonly<Record<string, Json>>): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

export const toUnixSeconds = (instant: Date): number => Math.floor(instant.getTime() / 1000);
