/** The settings of the API. */
import { billingSettings } from '@sluice/billing-vendor/settings';
import { GIVE_UP_AFTER_MS_DEFAULT } from '@sluice/domain/delivery/delivery-schedule';
import {
  listenHost,
  importSettings,
  integer,
  platformSettings,
  listenPort,
  encryptionSettings,
} from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import { z } from 'zod';

/** Addresses and CIDR blocks, commas between. */
const addressList = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((address) => address.trim())
      .filter((address) => address !== ''),
  )
  .pipe(
    z.array(
      z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], {
        error: 'must be an address or a network like 10.0.0.0/8; names are not looked up',
      }),
    ),
  );

export const apiSettings = platformSettings.extend({
  ...billingSettings.shape,
  ...encryptionSettings.shape,
  ...importSettings.shape,
  ...tracingSettings.shape,
  API_HOST: listenHost(),
  API_PORT: listenPort(8090),
  API_SECRET: z
    .string()
    .min(32)
    .max(512)
    .optional()
    .describe(
      'at least 32 characters, the same in every API process; access tokens, mailed codes and stored answers depend on it. Absent: a new one at each start, refused in production',
    ),
  API_TRUSTED_PROXIES: addressList.describe(
    'proxies in front, commas between: their X-Forwarded-For says who calls, which limits and the audit log go by',
  ),
  API_RATE_LIMIT_PER_MINUTE: integer(0, 10_000_000, 500).describe(
    'calls a minute that a token of a service account may make, at all API processes together, 429 beyond; 0: as many as it likes',
  ),
  API_KEY_RATE_LIMIT_PER_SECOND: integer(0, 1_000_000, 10).describe(
    'calls a second that a key of the app API may make, at all API processes together, 429 beyond; 0: as many as it likes',
  ),
  API_STATEMENT_MS_MAX: integer(100, 3_600_000, 30_000).describe(
    'how long a statement of a call may take, with its waits for locks, before the call is answered 503: one account that asks for too much does not keep the connections of all',
  ),
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      error:
        'must be like smtp://user:password@host:587; characters like # / ? of a password are percent-encoded',
    })
    .optional()
    .describe('where mails go out: smtp://user:password@host:587; absent: into MAIL_DIRECTORY'),
  MAIL_DIRECTORY: z
    .string()
    .default('.sluice/mail')
    .describe('where mails are kept, one file each, without SMTP_URL'),
  MAIL_FROM: z.string().default('Sluice <no-reply@localhost>').describe('the sender of mails'),
  ANALYTICS_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'the Pipelines API that our own events go to, such as a startup application; absent: they wait in the outbox',
    ),
  ANALYTICS_WRITE_KEY: z.string().default('').describe('its write key'),
  WEBHOOK_GIVE_UP_AFTER_MS: integer(1, 31_536_000_000, GIVE_UP_AFTER_MS_DEFAULT).describe(
    "the workers' own, to tell when a delivery is abandoned",
  ),
  CARD_PAYMENT_MS: integer(60_000, 86_400_000, 3_600_000).describe(
    'how long a customer may take to pay an invoice of the card rail; it is void afterwards',
  ),
  PURCHASE_WAIT_MS: integer(100, 60_000, 15_000).describe(
    'how long a call waits for a checkout, or for an invoice, before it answers without',
  ),
  OUTGOING_IP_ADDRESSES: addressList.describe(
    'where webhook deliveries leave from, commas between: the answer of /v1/info/ip_addresses',
  ),
});
