/** Name and schema of an event type, as calls give them. */
import { readSchema } from '@sluice/domain/event-schemas/schema-document';
import { EVENT_NAME_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { isLongerThan } from '@sluice/domain/values/storable-text';
import type { Json } from '@sluice/domain/values/json';
import { z } from 'zod';
import { NOT_BLANK, identifierText } from '../http/fields.ts';

/** As publishing reads it. */
export const eventTypeName = identifierText(EVENT_NAME_SIZE_BYTES_MAX)
  .min(1)
  .meta(NOT_BLANK)
  .refine((name) => !isLongerThan(name, EVENT_NAME_SIZE_BYTES_MAX), {
    error: `must be at most ${EVENT_NAME_SIZE_BYTES_MAX} bytes long`,
  })
  .meta({ description: `At most ${EVENT_NAME_SIZE_BYTES_MAX} bytes.` });

/** JSON of a schema for the payloads of publishing. Null: no schema. A wrong one is refused with its place. */
export const eventTypeSchema = z
  .unknown()
  .optional()
  .transform((schema, context) => {
    if (schema === undefined || schema === null) return null;
    const read = readSchema(schema as Json);
    if (read.outcome === 'read') return JSON.stringify(schema);
    const { pointer, message } = read;
    context.addIssue({
      code: 'custom',
      message: pointer === '' ? message : `${message} (at ${pointer})`,
      path: pathOf(pointer),
    });
    return z.NEVER;
  })
  .meta({
    type: ['object', 'null'],
    additionalProperties: true,
    description:
      'JSON Schema of the payloads (draft 2020-12, the keywords of the guide). Null or absent: any payload.',
  });

/** Into the schema, whose keys the request's own path names with dots. */
const pathOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
