/** An object and its people on the wire, and their schemas. Pure. */
import type { ObjectProfile, ObjectRelationshipRow } from '@sluice/database/people/object-reads';
import { svcId, svcObjectId } from '@sluice/domain/values/svc-id';
import { z } from 'zod';
import {
  customerIdentifiers,
  jsonObject,
  textValues,
  toTexts,
  toUnixSeconds,
} from './customer-view.ts';

export const objectIdentifiers = z
  .object({
    object_type_id: z.string().meta({ description: 'As Track takes it: an integer as text.' }),
    object_id: z.string(),
    svc_object_id: z.string(),
    cio_object_id: z.string().meta({ description: 'The same as `svc_object_id`.' }),
  })
  .meta({ id: 'ObjectIdentifiers' });

export const object = z
  .object({
    object_type_id: z.int(),
    identifiers: objectIdentifiers,
    attributes: textValues.meta({
      description:
        'Every value is text: numbers and booleans as in JSON, lists and objects as JSON text.',
    }),
    timestamps: z
      .record(z.string(), z.int())
      .meta({ description: 'When it was first seen, under `svc_object_id` and `cio_object_id`.' }),
  })
  .meta({
    id: 'Object',
    description: 'A thing that people are related to, such as a company or a course.',
  });

export const objectRelationship = z
  .object({
    identifiers: customerIdentifiers,
    attributes: jsonObject,
    timestamps: z
      .record(z.string(), z.int())
      .meta({ description: 'When it was made, under `created_at`.' }),
  })
  .meta({ id: 'ObjectRelationship', description: 'A person that an object is related to.' });

export function toObjectIdentifiers(
  row: Pick<ObjectProfile, 'objectNumber' | 'objectTypeId' | 'objectId'>,
): z.infer<typeof objectIdentifiers> {
  const ownId = svcObjectId(Number(row.objectNumber));
  return {
    object_type_id: String(row.objectTypeId),
    object_id: row.objectId,
    svc_object_id: ownId,
    cio_object_id: ownId,
  };
}

export function toObject(row: ObjectProfile): z.infer<typeof object> {
  const identifiers = toObjectIdentifiers(row);
  const createdAt = toUnixSeconds(row.createdAt);
  return {
    object_type_id: row.objectTypeId,
    identifiers,
    attributes: toTexts({ ...row.attributes, ...identifiers }),
    timestamps: { svc_object_id: createdAt, cio_object_id: createdAt },
  };
}

export function toObjectRelationship(
  row: ObjectRelationshipRow,
): z.infer<typeof objectRelationship> {
  const ownId = svcId(Number(row.personId));
  return {
    identifiers: { id: row.id, email: row.email, svc_id: ownId, cio_id: ownId },
    attributes: row.attributes,
    timestamps: { created_at: toUnixSeconds(row.createdAt) },
  };
}
