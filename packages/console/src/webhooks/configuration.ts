/** A webhook as `GET /v1/reporting_webhooks/{id}` shows it. The screens use a part. */
import type { Credentials } from '../sentences/credential-text.ts';
import type { Headers } from '../sentences/header-text.ts';
import type { Sending } from '../sentences/sending-text.ts';
import type { Subscription } from '../sentences/subscription-text.ts';

export interface Webhook extends Subscription, Sending, Credentials {
  readonly id: number;
  readonly name: string;
  readonly endpoint: string;
  readonly disabled: boolean;
  /** In place of the values hints. */
  readonly headers: Headers;
  /** Of an endpoint: the application that it belongs to. */
  readonly application_id?: string;
}
