/**
 * The bodies of incoming events (`domain/src/reports/incoming-report.ts`): the schema of `data` and a sample, by type. As in
 * `event-schemas.ts`, they describe and do not check.
 */
import type { IncomingEventType } from '@sluice/domain/delivery/incoming-event';
import { z } from 'zod';

const anyObject = z.record(z.string(), z.unknown());

const whose = {
  customer_id: z.string().meta({ description: 'Empty if no person is known.' }),
  email_address: z.string(),
  identifiers: z.looseObject({
    id: z.string().nullable(),
    email: z.string().nullable(),
    svc_id: z.string().optional(),
  }),
  anonymous_id: z.string().optional().meta({
    description: 'The visitor whom the call names. Without `svc_id` the person is unknown.',
  }),
  person_attributes: anyObject
    .optional()
    .meta({ description: 'With `with_person_attributes` only.' }),
};

const objectName = {
  object_type_id: z.string().optional(),
  object_id: z.string().optional(),
  svc_object_id: z.string().optional(),
};

export const TRACKED_DATA = z.looseObject({
  ...whose,
  name: z.string(),
  properties: anyObject.meta({ description: 'As sent.' }),
  source: z.string().optional().meta({ description: 'The call that brought it.' }),
});

const WHO = {
  customer_id: 'sample',
  email_address: 'ada@example.com',
  identifiers: { id: 'sample', email: 'ada@example.com', svc_id: 'a3000000' },
};

interface IncomingSchema {
  /** The value of `metric`. Undefined: the event's name. */
  readonly metrics: readonly [string, ...string[]] | undefined;
  readonly data: z.ZodObject;
  readonly sampleMetric: string;
  readonly sample: object;
}

const trackedSchema = (name: string, properties: object): IncomingSchema => ({
  metrics: undefined,
  data: TRACKED_DATA,
  sampleMetric: name,
  sample: { ...WHO, name, properties },
});

/** By type: the `metric` and the `data` of its bodies. */
export const INCOMING_SCHEMAS: Readonly<Record<IncomingEventType, IncomingSchema>> = {
  event: trackedSchema('order_placed', { order_id: '42', total: 99.5 }),
  page: trackedSchema('Pricing', { url: 'https://example.com/pricing' }),
  screen: trackedSchema('Cart', {}),
  identify: {
    metrics: ['identify'],
    data: z.looseObject({
      ...whose,
      attributes: anyObject.optional().meta({
        description: 'As sent; null removes one. Absent if newer ones were stored before.',
      }),
      relationship_action: z.enum(['add', 'delete']).optional(),
      relationships: z
        .array(z.looseObject({ ...objectName, relationship_attributes: anyObject }))
        .optional(),
      form_id: z.string().optional(),
    }),
    sampleMetric: 'identify',
    sample: { ...WHO, attributes: { plan: 'premium' } },
  },
  group: {
    metrics: ['group', 'add_relationships', 'delete_relationships'],
    data: z.looseObject({
      ...whose,
      ...objectName,
      attributes: anyObject.optional().meta({ description: 'Of the object, as sent.' }),
      relationships: z
        .array(z.looseObject({ relationship_attributes: anyObject }))
        .meta({ description: 'With people of an object, or with objects of a person.' }),
    }),
    sampleMetric: 'group',
    sample: {
      ...WHO,
      object_type_id: '1',
      object_id: 'acme',
      attributes: { name: 'Acme' },
      relationships: [{ identifiers: { id: 'sample' }, relationship_attributes: {} }],
    },
  },
  delete: {
    metrics: ['delete', 'suppress'],
    data: z.looseObject({ ...whose, ...objectName }),
    sampleMetric: 'delete',
    sample: WHO,
  },
  message: {
    metrics: undefined,
    data: z.looseObject({
      payload: anyObject.meta({ description: 'As published.' }),
      event_type_version: z.int().optional(),
      application: z.string().optional(),
      channel: z.string().optional(),
    }),
    sampleMetric: 'invoice.paid',
    sample: { payload: { invoice_id: 'in_1' }, application: 'acme' },
  },
};
