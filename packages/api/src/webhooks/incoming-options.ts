/** Incoming events that a webhook wants, between wire and row (`domain/src/delivery/incoming-event.ts`). */
import type { Webhook, WebhookSettings } from '@sluice/database/webhooks/webhooks';
import { EVENT_NAME_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { z } from 'zod';
import { NOT_BLANK, identifierText } from '../http/fields.ts';

const NAME_COUNT_MAX = 500;

/** The fields of a configuration; null, or an empty list of names, takes them back. */
export const incomingFields = {
  event_names: z
    .array(identifierText(EVENT_NAME_SIZE_BYTES_MAX).min(1).meta(NOT_BLANK))
    .max(NAME_COUNT_MAX)
    .transform((names) => [...new Set(names)])
    .nullable()
    .meta({
      description:
        'Of tracked events (`event`, `*`) and published messages (`message`, `*`) only the ones with one of these names, compared exactly. Null or empty: all.',
    }),
  with_imports: z
    .boolean()
    .meta({ description: 'True also sends events that came as rows of an import.' }),
  with_late: z.boolean().meta({
    description:
      'True also sends events, pages and screens that happened more than 72 hours before they came.',
  }),
  with_person_attributes: z.boolean().meta({
    description:
      'True adds `person_attributes` to incoming events: the attributes of the person after the call is applied.',
  }),
};

/** As `incomingFields`, if the body has no such field. */
export const newIncomingFields = {
  event_names: incomingFields.event_names.default(null),
  with_imports: incomingFields.with_imports.default(false),
  with_late: incomingFields.with_late.default(false),
  with_person_attributes: incomingFields.with_person_attributes.default(false),
};

/** Of a webhook as it stands. */
export const shownIncoming = {
  event_names: z.array(z.string()).nullable(),
  with_imports: z.boolean(),
  with_late: z.boolean(),
  with_person_attributes: z.boolean(),
};

type IncomingInBody = {
  readonly [Name in keyof typeof incomingFields]?:
    | z.infer<(typeof incomingFields)[Name]>
    | undefined;
};

type IncomingSettings = Pick<
  WebhookSettings,
  'eventNames' | 'withImports' | 'withLate' | 'withPersonAttributes'
>;

/** The given fields, as the row has them. */
export function incomingOf(body: IncomingInBody): Partial<IncomingSettings> {
  const { event_names: names, with_imports: withImports, with_late: withLate } = body;
  const { with_person_attributes: withPersonAttributes } = body;
  return {
    ...(names !== undefined && { eventNames: names?.length ? names : null }),
    ...(withImports !== undefined && { withImports }),
    ...(withLate !== undefined && { withLate }),
    ...(withPersonAttributes !== undefined && { withPersonAttributes }),
  };
}

/** The row as it is shown. */
export const showIncoming = (row: Webhook): z.infer<z.ZodObject<typeof shownIncoming>> => ({
  event_names: row.eventNames && [...row.eventNames],
  with_imports: row.withImports,
  with_late: row.withLate,
  with_person_attributes: row.withPersonAttributes,
});
