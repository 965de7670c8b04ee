/** A delivery and its attempts, as the API lists them. Times are Unix seconds. */
import type { AnswerOf, Described } from '../client/operations.ts';

export type Delivery = Described<'Delivery'>;
export type Attempt = Delivery['attempts'][number];

/** A page of the deliveries of all webhooks. */
export type AllPage = AnswerOf<'get', '/v1/deliveries'>;

/** The webhook of a list, as its path and the address have it. */
export interface OfWebhook {
  readonly webhookId: string;
}
