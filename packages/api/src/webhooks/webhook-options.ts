/**
 * Options of a webhook's requests, between the wire and the row.
 *
 * Its events are not here. Its headers, client certificate, authority and OAuth2 client: `endpoint-credentials/`.
 */
import type { DeliveryOptions, Webhook } from '@sluice/database/webhooks/webhooks';
import {
  FILTER_OPERATORS,
  isNumberText,
  valuesOfOperator,
  type FilterOperator,
} from '@sluice/domain/delivery/attribute-filter';
import {
  DISABLE_AFTER_DAYS_MAX,
  secretContext,
  SIGNING_SCHEMES,
} from '@sluice/domain/delivery/webhook';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';
import { text } from '../http/fields.ts';
import { headersInBody, hintsOf, openHeaders } from '../endpoint-credentials/webhook-headers.ts';
import {
  credentialFields,
  newCredentialFields,
  shownCredentials,
} from '../endpoint-credentials/credential-fields.ts';
import {
  changedCredentials,
  showCredentials,
  storedCredentials,
} from '../endpoint-credentials/endpoint-credentials.ts';

const RATE_PER_SECOND_MAX = 10_000;
const WINDOW_MAX = 1_000;
const FILTER_COUNT_MAX = 20;
const FILTER_FIELD_LENGTH_MAX = 200;
const FILTER_VALUE_COUNT_MAX = 1_000;
/** Of one filter, all values together: filters are read for each commit batch with reporting events. */
const FILTER_VALUES_LENGTH_MAX = 32_000;
const FILTER_VALUE_LENGTH_MAX = 1_000;

const filterValue = z
  .union([
    text(FILTER_VALUE_LENGTH_MAX),
    z.number().superRefine((number, context) => {
      // It was rounded when the body was read: it would match other ids than the one that was meant.
      if (Math.abs(number) <= Number.MAX_SAFE_INTEGER) return;
      const message =
        'must be sent as text: a number beyond 2^53 is rounded, and a text is compared exactly';
      context.addIssue({ code: 'custom', message });
    }),
    z.boolean(),
  ])
  .transform(String)
  .meta({
    type: ['string', 'number', 'boolean'],
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  });

const attributeFilter = z
  .object({
    field: text(FILTER_FIELD_LENGTH_MAX).min(1).meta({
      description:
        'A member of the body of a delivery, dots between levels: `object_type`, `data.campaign_id`. In a list the next part is a place (`data.recipients.0.device_id`) or a member of any of its objects (`data.recipients.device_id`).',
    }),
    operator: z.enum(FILTER_OPERATORS).meta({
      description:
        '`eq`, `in`: equal to one of the values; of a list, one element is. `contains`: a text holds one of them, or a list has an element that is equal to one. `gt`, `gte`, `lt`, `lte`: both sides are numbers, or texts that are numbers. `exists`: there and not null. The others with `not_` are true exactly where these are false, so also where the member is absent.',
    }),
    values: z
      .array(filterValue)
      .max(FILTER_VALUE_COUNT_MAX)
      .optional()
      .meta({
        description: `Compared as text, emails without letter case. Exactly one number for \`gt\`, \`gte\`, \`lt\` and \`lte\`; no value for \`exists\` and \`not_exists\`; at least one value otherwise. Send a number beyond 2^53 as text. At most ${FILTER_VALUES_LENGTH_MAX} characters together.`,
      }),
  })
  .superRefine(({ operator, values }, context) => {
    const message = whyNotValues(operator, values);
    if (message !== undefined) context.addIssue({ code: 'custom', message, path: ['values'] });
  })
  .meta({ id: 'AttributeFilter' });

/** Worded to follow `values`; undefined if they fit the operator. */
function whyNotValues(
  operator: FilterOperator,
  values: readonly string[] | undefined,
): string | undefined {
  const wanted = valuesOfOperator(operator);
  if (wanted === 'none')
    return (values ?? []).length === 0 ? undefined : 'must not be given with this operator';
  if (values === undefined) return 'is required with this operator';
  if (values.length === 0) return 'must hold at least 1 entry with this operator';
  if (values.reduce((sum, value) => sum + value.length, 0) > FILTER_VALUES_LENGTH_MAX)
    return `must be at most ${FILTER_VALUES_LENGTH_MAX} characters long, all of them together`;
  const isOneNumber = values.length === 1 && values.every(isNumberText);
  return wanted === 'number' && !isOneNumber
    ? 'must be exactly one number, or a text that is one, with this operator'
    : undefined;
}

/** The fields of a configuration; null, or an empty list of headers, takes one back. */
export const optionFields = {
  standard_webhooks: z.boolean().meta({
    description:
      'True adds `webhook-id`, `webhook-timestamp` and `webhook-signature`, for receivers with a library of Standard Webhooks.',
  }),
  signing: z.enum(SIGNING_SCHEMES).meta({
    description: '`standard_webhooks`: by that alone. `none`: not at all.',
  }),
  disable_after_days: z.int().min(1).max(DISABLE_AFTER_DAYS_MAX).nullable().meta({
    description: 'Disabled after so many days of failure; null for never.',
  }),
  rate_limit_per_second: z.int().min(1).max(RATE_PER_SECOND_MAX).nullable().meta({
    description: 'Requests a second, evenly spaced, retries too; null for no limit.',
  }),
  window_max: z.int().min(1).max(WINDOW_MAX).nullable().meta({
    description:
      'Requests at the same time; null for as many as the installation allows. Deliveries about one person are never reordered, also after a merge. At most one is in flight, and it does not overtake an earlier one that has failed. Others (about different people, without a person, tests, resends, replays) may arrive in any order.',
  }),
  ordering: z.enum(['person', 'strict']).meta({
    description:
      '`person`: deliveries about one person are never reordered. `strict`: deliveries are never reordered, because only one request is in flight, for any `window_max`.',
  }),
  headers: headersInBody,
  attribute_filters: z.array(attributeFilter).max(FILTER_COUNT_MAX).nullable().meta({
    description:
      'Only events of the chosen types for which all of these hold are sent. Null or empty: every one.',
  }),
  ...credentialFields,
};

/** As `optionFields`, if the body has no such field. */
export const newOptionFields = {
  standard_webhooks: optionFields.standard_webhooks.default(false),
  signing: optionFields.signing.default('sluice'),
  disable_after_days: optionFields.disable_after_days.default(null),
  rate_limit_per_second: optionFields.rate_limit_per_second.default(null),
  window_max: optionFields.window_max.default(null),
  ordering: optionFields.ordering.default('person'),
  headers: optionFields.headers.default({}),
  attribute_filters: optionFields.attribute_filters.default(null),
  ...newCredentialFields,
};

/** Of a webhook as it stands. */
export const shownOptions = {
  standard_webhooks: z.boolean(),
  signing: z.enum(SIGNING_SCHEMES),
  disable_after_days: z.int().nullable(),
  rate_limit_per_second: z.int().nullable(),
  window_max: z.int().nullable(),
  ordering: z.enum(['person', 'strict']),
  headers: z.record(z.string(), z.string()).meta({
    description:
      'Of each value a hint: its last characters. It is no value that could be sent back.',
  }),
  attribute_filters: z
    .array(
      z
        .object({
          field: z.string(),
          operator: z.enum(FILTER_OPERATORS),
          values: z.array(z.string()).optional(),
        })
        .meta({ id: 'ShownAttributeFilter' }),
    )
    .nullable(),
  ...shownCredentials,
};

type OptionsInBody = {
  readonly [Name in keyof typeof optionFields]?: z.infer<(typeof optionFields)[Name]> | undefined;
};

/** The options of a new webhook, as the row has them. */
export const newOptionsOf = (
  body: OptionsInBody,
  environmentId: number,
  encryptedText: EncryptedText,
): Partial<DeliveryOptions> => ({
  ...optionsOf(body, environmentId, encryptedText),
  endpointCredentials: storedCredentials(body, environmentId, encryptedText),
});

/** The given options, as the row has them, without the credentials. */
function optionsOf(
  body: OptionsInBody,
  environmentId: number,
  encryptedText: EncryptedText,
): Partial<DeliveryOptions> {
  const { standard_webhooks, rate_limit_per_second, window_max, ordering, attribute_filters } =
    body;
  const names = Object.keys(body.headers ?? {});
  const inLowerCase = Object.fromEntries(
    Object.entries(body.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return {
    ...(standard_webhooks !== undefined && { standardWebhooks: standard_webhooks }),
    ...(body.signing !== undefined && { signing: body.signing }),
    ...(body.disable_after_days !== undefined && { disableAfterDays: body.disable_after_days }),
    ...(rate_limit_per_second !== undefined && { rateLimitPerSecond: rate_limit_per_second }),
    ...(window_max !== undefined && { windowMax: window_max }),
    ...(ordering !== undefined && { ordering }),
    ...(body.headers !== undefined && {
      customHeaders:
        names.length === 0
          ? null
          : encryptedText.encrypt(JSON.stringify(inLowerCase), secretContext(environmentId)),
    }),
    ...(attribute_filters !== undefined && {
      attributeFilters: attribute_filters?.length ? attribute_filters : null,
    }),
  };
}

/**
 * The given options for an existing webhook. The same secrets as before are no change, even if they are encrypted
 * differently.
 */
export function changedOptionsOf(
  body: OptionsInBody,
  before: Webhook,
  environmentId: number,
  encryptedText: EncryptedText,
): Partial<DeliveryOptions> {
  const { customHeaders, ...options } = optionsOf(body, environmentId, encryptedText);
  const endpointCredentials = changedCredentials(body, before, environmentId, encryptedText);
  const changes = { ...options, ...(endpointCredentials !== undefined && { endpointCredentials }) };
  if (customHeaders === undefined) return changes;
  const headersOf = (encrypted: string | null): string | undefined => {
    try {
      const opened = openHeaders(encrypted, environmentId, encryptedText);
      return JSON.stringify(Object.entries(opened).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    } catch {
      // The key that encrypted them is lost, so any given value replaces them.
      return undefined;
    }
  };
  const isSame = headersOf(customHeaders) === headersOf(before.customHeaders);
  return isSame ? changes : { ...changes, customHeaders };
}

/** The row as it is shown. */
export function showOptions(
  row: Webhook,
  environmentId: number,
  encryptedText: EncryptedText,
): z.infer<z.ZodObject<typeof shownOptions>> {
  const { customHeaders, attributeFilters } = row;
  return {
    standard_webhooks: row.standardWebhooks,
    signing: row.signing,
    disable_after_days: row.disableAfterDays,
    rate_limit_per_second: row.rateLimitPerSecond,
    window_max: row.windowMax,
    ordering: row.ordering,
    headers: hintsOf(openHeaders(customHeaders, environmentId, encryptedText)),
    attribute_filters: showFilters(attributeFilters),
    ...showCredentials(row, environmentId, encryptedText),
  };
}

/** The filters as an answer has them, or null. */
export const showFilters = (
  filters: Webhook['attributeFilters'],
): z.infer<typeof shownOptions.attribute_filters> =>
  filters?.map(({ field, operator, values }) => ({
    field,
    operator,
    ...(values && { values: [...values] }),
  })) ?? null;
