/** The settings of the API. */
import { billingSettings } from '@sluice/billing-vendor/settings';
import { GIVE_UP_AFTER_MS_DEFAULT } from '@sluice/domain/delivery/delivery-schedule';
import {
  adminPort,
  databaseUrl,
  demoHosts,
  listenHost,
  importSettings,
  integer,
  platformSettings,
  serviceDatabaseUrl,
  listenPort,
  encryptionSettings,
} from '@sluice/platform/settings/config';
import { outgoingSettings } from '@sluice/platform/outgoing/outgoing-settings';
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
  API_DATABASE_URL: serviceDatabaseUrl('sluice_api'),
  DATABASE_READ_URL: databaseUrl()
    .optional()
    .describe(
      'URL of one streaming replica of the same database, from which the API answers large reads. Absent: the API reads from the primary only',
    ),
  DATABASE_READ_STALENESS_MS_MAX: integer(500, 600_000, 5_000).describe(
    'maximum age of data that the API reads from `DATABASE_READ_URL`. For as long after a change of a caller, its own reads go to the primary. The same in every API process',
  ),
  ...billingSettings.shape,
  ...encryptionSettings.shape,
  ...importSettings.shape,
  ...outgoingSettings.shape,
  ...tracingSettings.shape,
  API_HOST: listenHost(),
  API_PORT: listenPort(8090),
  API_ADMIN_PORT: adminPort(),
  API_SECRET: z
    .string()
    .min(32)
    .max(512)
    .optional()
    .describe(
      'secret of at least 32 characters for access tokens, mailed codes and stored answers; the same in every API process. Absent: a new secret at each start. Production requires a value',
    ),
  DEMO_HOSTS: demoHosts(),
  API_SIGNUP: z
    .enum(['open', 'invitation', 'off'])
    .default('open')
    .describe(
      'clients that may sign up: all (`open`), clients that send `API_SIGNUP_INVITATION` (`invitation`), or no client (`off`)',
    ),
  API_SIGNUP_INVITATION: z
    .string()
    .min(16)
    .max(512)
    .optional()
    .describe('invitation of at least 16 characters, required with `API_SIGNUP=invitation`'),
  API_TRUSTED_PROXIES: addressList.describe(
    'comma-separated addresses and networks of trusted reverse proxies; their `X-Forwarded-For` gives the client address for rate limits and the audit log',
  ),
  API_ADDRESS_CONNECTION_COUNT_MAX: integer(0, 1_000_000, 1_000).describe(
    'maximum open connections of one client address, or of one IPv6 network (/64), to one process; further ones are cut. Addresses of API_TRUSTED_PROXIES have no maximum. 0: no limit',
  ),
  API_RATE_LIMIT_PER_MINUTE: integer(0, 10_000_000, 500).describe(
    'maximum calls per minute with one token of a service account, over all API processes; further calls get 429. 0: no limit',
  ),
  API_KEY_RATE_LIMIT_PER_SECOND: integer(0, 1_000_000, 10).describe(
    'maximum calls per second with one app API key, over all API processes; further calls get 429. 0: no limit',
  ),
  API_STATEMENT_MS_MAX: integer(100, 3_600_000, 30_000).describe(
    'maximum time of one SQL statement of a call, waits for locks included; beyond it, the call gets 503, so that one account cannot occupy all connections',
  ),
  API_TAIL_COUNT_MAX: integer(1, 10_000, 80).describe(
    'maximum concurrent live tails in one process, about 256 KB of memory each; further ones get 503',
  ),
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      error:
        'must be like smtp://user:password@host:587; characters like # / ? of a password are percent-encoded',
    })
    .optional()
    .describe(
      'SMTP server for outgoing mail: smtp://user:password@host:587. Absent: the API writes mail to MAIL_DIRECTORY',
    ),
  MAIL_DIRECTORY: z
    .string()
    .default('.sluice/mail')
    .describe('directory for mail, one file per message, if SMTP_URL is absent'),
  MAIL_FROM: z.string().default('Sluice <no-reply@localhost>').describe('sender address of mail'),
  ANALYTICS_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'URL of the Pipelines API to which Sluice sends its own events, such as a startup application. Absent: the events wait in the outbox',
    ),
  ANALYTICS_WRITE_KEY: z.string().default('').describe('write key for ANALYTICS_URL'),
  WEBHOOK_GIVE_UP_AFTER_MS: integer(1, 31_536_000_000, GIVE_UP_AFTER_MS_DEFAULT).describe(
    'same value as in the workers; the API computes with it when a delivery is abandoned',
  ),
  CARD_PAYMENT_MS: integer(60_000, 86_400_000, 3_600_000).describe(
    'maximum time for a customer to pay the invoice of a card purchase; afterwards the invoice is void',
  ),
  PURCHASE_WAIT_MS: integer(100, 60_000, 15_000).describe(
    'maximum time that a call waits for a checkout or an invoice; afterwards it answers without the result',
  ),
  CONSOLE_DIRECTORY: z
    .string()
    .min(1)
    .optional()
    .describe(
      'directory of the built web console, which the API then serves at `/`. Absent: no console. `node scripts/build-console.mjs` builds it and prints the directory',
    ),
  CONSOLE_INTAKE_URL: z
    .url({ protocol: /^https?$/ })
    .default('http://127.0.0.1:8080')
    .transform((url) => url.replace(/\/$/, ''))
    .describe('URL of intake that the samples of the console show'),
  CONSOLE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'URL at which browsers open the console and the portal, for invitations and links. Absent: invitations name no address, and links have the address of the call',
    ),
  OPERATOR_ACCOUNT_IDS: z
    .string()
    .regex(
      /^(?:[1-9]\d{0,9}(?:, *[1-9]\d{0,9})*)?$/,
      'must be numbers of accounts, separated by commas',
    )
    .default('')
    .transform((text) => (text === '' ? [] : text.split(',').map(Number)))
    .describe(
      'comma-separated ids of the operator’s own accounts: their account_admins see the state of the installation in the console (`/fleet`). Absent: no user sees it there, and `GET /v1/fleet` needs a token with the scope fleet:read',
    ),
  OUTGOING_IP_ADDRESSES: addressList.describe(
    'comma-separated source addresses of webhook deliveries, as /v1/info/ip_addresses returns them',
  ),
});
