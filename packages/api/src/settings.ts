/** The settings of the API. */
import { integer, platformSettings } from '@sluice/platform/config';
import { z } from 'zod';

export const apiSettings = platformSettings.extend({
  API_HOST: z.string().default('127.0.0.1').describe('address to listen on'),
  API_PORT: integer(0, 65_535, 8090).describe('0: any free one'),
  API_SECRET: z
    .string()
    .min(32)
    .max(512)
    .optional()
    .describe(
      'at least 32 characters, the same in every API process; access tokens, mailed codes and stored answers depend on it. Absent: a new one at each start, refused in production',
    ),
  WEBHOOK_GIVE_UP_AFTER_MS: integer(1, 31_536_000_000, 604_800_000).describe(
    "the workers' own, to tell when a delivery is abandoned",
  ),
  OUTGOING_IP_ADDRESSES: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((address) => address.trim())
        .filter((address) => address !== ''),
    )
    .pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])))
    .describe(
      'where webhook deliveries leave from, commas between: the answer of /v1/info/ip_addresses',
    ),
});
