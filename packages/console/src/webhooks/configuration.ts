/** Types of a webhook's configuration, as the API reads and shows it. */
import type { BodyOf, Described } from '../client/operations.ts';

/** With the state of its deliveries and the counts of an hour, if they were asked for. */
export type Webhook = Described<'ReportingWebhook'>;

export type NewWebhook = BodyOf<'post', '/v1/reporting_webhooks'>;
export type WebhookChanges = BodyOf<'put', '/v1/reporting_webhooks/{webhook_id}'>;
