/**
 * Target of a webhook's deliveries: the columns of `webhooks` that a drain reads with its delivery queue, and again
 * whenever it writes its progress, so that a change counts at once.
 */
import type { SigningScheme } from '@sluice/domain/delivery/webhook';
import { sql } from 'kysely';

/** The current address and settings for the deliveries of a lane. */
export interface LaneTarget {
  readonly endpoint: string;
  /**
   * Grows when the webhook is sent elsewhere or with other headers or another key, and when it is enabled. Earlier
   * failures do not count against the new endpoint.
   */
  readonly endpointVersion: number;
  /** As it is stored: encrypted. */
  readonly signingKey: string;
  /** The one that replaces it at `nextSignsFromMs`; both null but while keys are rotated. */
  readonly nextSigningKey: string | null;
  readonly nextSignsFromMs: number | null;
  /** Adds the headers of Standard Webhooks. */
  readonly standardWebhooks: boolean;
  /** The signature schemes of the webhook. */
  readonly signing: SigningScheme;
  /** Null: as fast as it goes. */
  readonly rateLimitPerSecond: number | null;
  /** Null: the worker's own limit. It is 1 if the webhook wants strict order. */
  readonly windowMax: number | null;
  /** As they are stored: encrypted JSON. */
  readonly customHeaders: string | null;
  /** As they are stored: encrypted JSON (`EndpointCredentials`). */
  readonly endpointCredentials: string | null;
}

export const TARGET = sql`
  webhooks.endpoint, webhooks.endpoint_version as "endpointVersion", webhooks.signing_key as "signingKey", webhooks.next_signing_key as "nextSigningKey",
  (extract(epoch from webhooks.next_signs_from) * 1000)::float8 as "nextSignsFromMs",
  webhooks.standard_webhooks as "standardWebhooks", webhooks.signing, webhooks.rate_limit_per_second as "rateLimitPerSecond",
  case when webhooks.ordering = 'strict' then 1 else webhooks.window_max end as "windowMax", webhooks.custom_headers as "customHeaders",
  webhooks.endpoint_credentials as "endpointCredentials"`;

/** The target alone, of a row with more columns. */
export function targetOf(row: LaneTarget): LaneTarget {
  return {
    endpoint: row.endpoint,
    endpointVersion: row.endpointVersion,
    signingKey: row.signingKey,
    nextSigningKey: row.nextSigningKey,
    nextSignsFromMs: row.nextSignsFromMs,
    standardWebhooks: row.standardWebhooks,
    signing: row.signing,
    rateLimitPerSecond: row.rateLimitPerSecond,
    windowMax: row.windowMax,
    customHeaders: row.customHeaders,
    endpointCredentials: row.endpointCredentials,
  };
}
