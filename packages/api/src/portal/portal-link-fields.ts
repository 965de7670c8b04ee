/** Fields of a new link to the portal, with their checks. */
import { choose, hasMember, hasMemberAs, where } from '../http/conditions.ts';
import {
  PORTAL_CAPABILITY_NAMES,
  PORTAL_SECONDS_MAX,
  PORTAL_SECONDS_MIN,
  PORTAL_WEBHOOK_COUNT_MAX,
  whyNoAccent,
} from '@sluice/domain/accounts/portal';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { NOT_BLANK, text } from '../http/fields.ts';
import { webAddress } from '../http/url-field.ts';
import { applicationId, eventTypes } from '../webhooks/webhook-fields.ts';
import { optionFields } from '../webhooks/webhook-options.ts';

const LABEL_LENGTH_MAX = 200;
const SECONDS_DEFAULT = 3_600;
/** 22 KB as an image, which fits into a body with all else. */
const LOGO_LENGTH_MAX = 30_000;
const LOGO = /^data:image\/(?:png|jpeg|webp|gif|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/;

const theme = z
  .strictObject({
    name: text(100)
      .trim()
      .min(1)
      .meta(NOT_BLANK)
      .optional()
      .meta({ description: 'Of your product.' }),
    accent: z
      .string()
      .regex(/^#[\dA-Fa-f]{6}$/, 'must be a colour like #0b6a73')
      .optional()
      .meta({ description: 'Of buttons. At least 3:1 to the page in each colour scheme.' }),
    color_scheme: z.enum(['light', 'dark', 'auto']).default('auto'),
    logo: z
      .string()
      .max(LOGO_LENGTH_MAX)
      .regex(LOGO, 'must be an image as a data: URL in base64')
      .optional()
      .meta({ description: 'A `data:` URL.' }),
  })
  .superRefine(({ accent, color_scheme: scheme }, context) => {
    const message = accent && whyNoAccent(accent, scheme);
    if (message) context.addIssue({ code: 'custom', path: ['accent'], message });
  })
  .meta({ id: 'PortalTheme' });

export const capability = z.enum(PORTAL_CAPABILITY_NAMES);

export const newLink = z
  .strictObject({
    for: text(LABEL_LENGTH_MAX)
      .trim()
      .min(1)
      .meta(NOT_BLANK)
      .meta({ description: 'Whom it is for, as the audit log shows it.' }),
    webhook_ids: z
      .array(z.int().min(1).max(INTEGER_MAX))
      .max(PORTAL_WEBHOOK_COUNT_MAX)
      .default([])
      .meta({
        description:
          'At least one, unless `create` or an application is given. Give each a secret of its own first. Until then it signs with the workspace’s, as webhooks of other customers do.',
      }),
    capabilities: z
      .array(capability)
      .max(10)
      .default([])
      .transform((given) => [...new Set<z.infer<typeof capability>>(['view', ...given])])
      .meta({
        description:
          '`view` is always one. `edit`: endpoint, name, headers, pause, skip. `resend`: retry, resend, test, replay. `rotate`: secrets.',
      }),
    expires_in: z
      .int()
      .min(PORTAL_SECONDS_MIN)
      .max(PORTAL_SECONDS_MAX)
      .default(SECONDS_DEFAULT)
      .meta({ description: 'Seconds until the session ends.' }),
    event_types: eventTypes.nullable().default(null).meta({
      description:
        'The types that may be chosen; null if a webhook keeps its types. Required with `create`.',
    }),
    attribute_filters: optionFields.attribute_filters.optional().meta({
      description:
        'Of webhooks that are made in the portal. Required with `create`; null for all events.',
    }),
    application: applicationId.nullable().default(null).meta({
      description: 'Opens its endpoints in place of `webhook_ids`.',
    }),
    return_url: webAddress.nullable().default(null),
    theme: theme.optional(),
  })
  .superRefine((given, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (given.application !== null) {
      if (given.webhook_ids.length > 0) refuse('webhook_ids', 'must be empty with an application');
      if (given.event_types) refuse('event_types', 'must not be given with an application');
      return;
    }
    const isCreating = given.capabilities.includes('create');
    if (given.webhook_ids.length === 0 && !isCreating)
      refuse('webhook_ids', 'must hold at least 1 entry, unless webhooks may be made');
    if (isCreating && given.event_types === null)
      refuse('event_types', 'is required with the capability create');
    if (isCreating && given.attribute_filters === undefined)
      refuse('attribute_filters', 'is required with the capability create; null gives all events');
  })
  .meta({
    id: 'NewPortalLink',
    ...where(
      choose(
        hasMemberAs('application', { type: 'string' }),
        { properties: { webhook_ids: { maxItems: 0 }, event_types: { type: 'null' } } },
        choose(
          hasMemberAs('capabilities', { contains: { const: 'create' } }),
          {
            allOf: [
              hasMember('attribute_filters'),
              hasMemberAs('event_types', { type: 'array', items: {} }),
            ],
          },
          hasMemberAs('webhook_ids', { minItems: 1 }),
        ),
      ),
    ),
    requestExamples: [
      {
        for: 'acme/jo',
        capabilities: ['create', 'resend'],
        event_types: ['customer_subscribed', 'customer_unsubscribed'],
        attribute_filters: [{ field: 'data.customer_id', operator: 'in', values: ['acme-1'] }],
      },
    ],
  });
