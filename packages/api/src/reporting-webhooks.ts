/**
 * Reporting webhooks as their owners manage them (ingestion-webhooks.md §4).
 *
 * Lenient where real clients are loose: PUT changes what it names and leaves the rest, because they
 * send `{disabled: true}` alone (ingestion-conventions.md §4.6); unknown fields are ignored. Strict
 * where a mistake would be silent: an event type that does not exist is refused by name.
 */
import type { ChangeOrigin } from '@sluice/database/audit-logs';
import type { NewWebhook, Webhook, WebhookSettings } from '@sluice/database/webhooks';
import { isSelectableEventType, SELECTABLE_EVENT_TYPES } from '@sluice/domain/reporting-event';
import type { SealedText } from '@sluice/platform/sealed-text';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from './authenticate.ts';
import { sendProblem } from './error-handling.ts';
import { badBody, badRequest, commonFailures, idInPath, missing, text } from './fields.ts';
import { notFound } from './problem.ts';
import type { ApiServer } from './server.ts';
import { whyNoUrl } from './url-field.ts';
import {
  registerWebhookDeliveries,
  type WebhookDeliveryDependencies,
} from './webhook-deliveries.ts';
import {
  newOptionFields,
  optionFields,
  optionsOf,
  shownOptions,
  showOptions,
} from './webhook-options.ts';

export interface ReportingWebhookDependencies extends WebhookDeliveryDependencies {
  readonly makeWebhook: (
    environmentId: number,
    settings: NewWebhook,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<Webhook | undefined>;
  readonly listWebhooks: (environmentId: number) => Promise<Webhook[]>;
  readonly findWebhook: (environmentId: number, webhookId: number) => Promise<Webhook | undefined>;
  readonly changeWebhook: (
    environmentId: number,
    webhookId: number,
    changes: Partial<WebhookSettings>,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<{ readonly webhook: Webhook; readonly mustWake: boolean } | undefined>;
  readonly removeWebhook: (
    environmentId: number,
    webhookId: number,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<boolean>;
  /** Lets what is held back be tried now; losing a call only delays it until the next sweep. */
  readonly wakeLane: (lane: {
    readonly environmentId: number;
    readonly webhookId: number;
  }) => Promise<void>;
  readonly sealedText: SealedText;
  readonly now: () => number;
}

const NAME_LENGTH_MAX = 200;
const ENDPOINT_LENGTH_MAX = 2048;
/** Room for every type twice; duplicates are collapsed. */
const EVENT_COUNT_MAX = 2 * SELECTABLE_EVENT_TYPES.length;

const endpoint = text(ENDPOINT_LENGTH_MAX)
  .superRefine((value, context) => {
    const message = whyNoUrl(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({
    format: 'uri',
    description: 'An http or https URL; https is recommended. No user name or password.',
  });

const events = z
  .array(
    z.string().superRefine((value, context) => {
      if (isSelectableEventType(value)) return;
      context.addIssue({
        code: 'custom',
        params: { reason: 'unsupported' },
        message: `is not an event type: ${JSON.stringify(value.slice(0, 100))}`,
      });
    }),
  )
  .min(1)
  .max(EVENT_COUNT_MAX)
  .transform((types) => [...new Set(types)])
  .meta({
    items: { type: 'string', enum: [...SELECTABLE_EVENT_TYPES] },
    description: 'Which events are sent.',
  });

const fields = {
  name: text(NAME_LENGTH_MAX).trim().min(1),
  endpoint,
  events,
  disabled: z
    .boolean()
    .meta({ description: 'True stops sending: what happens meanwhile is not sent later.' }),
  full_resolution: z
    .boolean()
    .meta({ description: 'False sends only the first open and click of a message.' }),
  with_content: z.boolean().meta({ description: "True includes the message's body." }),
  ...optionFields,
};

const newWebhook = z
  .object({
    ...fields,
    disabled: fields.disabled.default(false),
    full_resolution: fields.full_resolution.default(false),
    with_content: fields.with_content.default(false),
    ...newOptionFields,
  })
  .meta({ id: 'NewReportingWebhook', description: 'The configuration of a webhook to be made.' });

const webhookChanges = z
  .object(fields)
  .partial()
  .meta({ id: 'ReportingWebhookChanges', description: 'The fields to change; the others stay.' });

const webhook = z
  .object({
    id: z.int(),
    type: z.literal('webhook'),
    name: z.string(),
    endpoint: z.string(),
    events: z.array(z.string()),
    disabled: z.boolean(),
    full_resolution: z.boolean(),
    with_content: z.boolean(),
    ...shownOptions,
  })
  .meta({ id: 'ReportingWebhook', description: 'A webhook as it stands.' });

const params = z.object({ webhook_id: idInPath });
const tags = ['reporting webhooks'];

export function registerReportingWebhooks(
  app: ApiServer,
  dependencies: ReportingWebhookDependencies,
): void {
  const show = (row: Webhook, environmentId: number): z.infer<typeof webhook> => ({
    ...toWire(row),
    ...showOptions(row, environmentId, dependencies.sealedText),
  });

  app.post(
    '/v1/reporting_webhooks',
    {
      schema: {
        tags,
        summary: 'Make a reporting webhook',
        body: newWebhook,
        response: { 200: webhook, ...badRequest, ...badBody, ...commonFailures },
      },
    },
    async (request, reply) => {
      const { name, endpoint: url, events: types, disabled, ...rest } = request.body;
      const environmentId = environmentOf(request);
      const made = await dependencies.makeWebhook(
        environmentId,
        {
          name,
          endpoint: url,
          events: types,
          disabled,
          fullResolution: rest.full_resolution,
          withContent: rest.with_content,
          ...optionsOf(rest, environmentId, dependencies.sealedText),
        },
        changeOriginOf(request),
        dependencies.now(),
      );
      return made
        ? reply.send(show(made, environmentId))
        : sendProblem(request, reply, notFound('the workspace of this key was'));
    },
  );

  app.get(
    '/v1/reporting_webhooks',
    {
      schema: {
        tags,
        summary: 'List the reporting webhooks',
        description: 'All of them, oldest first.',
        response: { 200: z.object({ reporting_webhooks: z.array(webhook) }), ...commonFailures },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const webhooks = await dependencies.listWebhooks(environmentId);
      return reply.send({ reporting_webhooks: webhooks.map((row) => show(row, environmentId)) });
    },
  );

  app.get(
    '/v1/reporting_webhooks/:webhook_id',
    {
      schema: {
        tags,
        summary: 'Get a reporting webhook',
        params,
        response: { 200: webhook, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const found = await dependencies.findWebhook(
        environmentOf(request),
        request.params.webhook_id,
      );
      return found
        ? reply.send(show(found, environmentOf(request)))
        : sendProblem(request, reply, notFound('the reporting webhook was'));
    },
  );

  app.put(
    '/v1/reporting_webhooks/:webhook_id',
    {
      schema: {
        tags,
        summary: 'Change a reporting webhook',
        description: 'A changed endpoint, and enabling, let what is held back be tried at once.',
        params,
        body: webhookChanges,
        response: { 200: webhook, ...badRequest, ...missing, ...badBody, ...commonFailures },
      },
    },
    async (request, reply) => {
      const lane = { environmentId: environmentOf(request), webhookId: request.params.webhook_id };
      const changes = {
        ...toChanges(request.body),
        ...optionsOf(request.body, lane.environmentId, dependencies.sealedText),
      };
      const updated = await dependencies.changeWebhook(
        lane.environmentId,
        lane.webhookId,
        changes,
        changeOriginOf(request),
        dependencies.now(),
      );
      if (!updated) return sendProblem(request, reply, notFound('the reporting webhook was'));
      if (updated.mustWake) {
        await dependencies.wakeLane(lane).catch((error: unknown) => {
          request.log.warn(
            { error, ...lane },
            'a lane could not be woken; the next sweep finds it',
          );
        });
      }
      return reply.send(show(updated.webhook, lane.environmentId));
    },
  );

  app.delete(
    '/v1/reporting_webhooks/:webhook_id',
    {
      schema: {
        tags,
        summary: 'Delete a reporting webhook',
        description: 'What was not delivered yet is not sent any more.',
        params,
        response: {
          200: z.undefined().meta({ description: 'Deleted.' }),
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const isDeleted = await dependencies.removeWebhook(
        environmentOf(request),
        request.params.webhook_id,
        changeOriginOf(request),
        dependencies.now(),
      );
      return isDeleted
        ? reply.send(undefined)
        : sendProblem(request, reply, notFound('the reporting webhook was'));
    },
  );

  registerWebhookDeliveries(app, dependencies);
}

function toChanges(body: z.infer<typeof webhookChanges>): Partial<WebhookSettings> {
  const {
    full_resolution: fullResolution,
    with_content: withContent,
    name,
    endpoint: url,
    events: types,
    disabled,
  } = body;
  return {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { endpoint: url }),
    ...(types !== undefined && { events: types }),
    ...(disabled !== undefined && { disabled }),
    ...(fullResolution !== undefined && { fullResolution }),
    ...(withContent !== undefined && { withContent }),
  };
}

const toWire = (row: Webhook): Omit<z.infer<typeof webhook>, keyof typeof shownOptions> => ({
  id: row.webhookId,
  type: 'webhook',
  name: row.name,
  endpoint: row.endpoint,
  events: [...row.events],
  disabled: row.disabled,
  full_resolution: row.fullResolution,
  with_content: row.withContent,
});
