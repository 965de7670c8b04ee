/** Settings of the processes that call addresses which customers give: receivers, files of imports, identity providers. */
import { parseNetwork, type AddressRange } from '@sluice/domain/delivery/network-address';
import { z } from 'zod';
import { flag } from '../settings/config.ts';
import { parseProxy } from './proxy-tunnel.ts';

/** Part of the settings of a worker and of the API. */
export const outgoingSettings = z.object({
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES: flag(false).describe(
    'whether private and loopback addresses are allowed for deliveries, for files of imports and for identity providers',
  ),
  WEBHOOK_ALLOWED_NETWORKS: z
    .string()
    .default('')
    .transform((text, context): AddressRange[] =>
      text
        .split(',')
        .filter((part) => part.trim() !== '')
        .flatMap((part) => {
          const range = parseNetwork(part.trim());
          if (!range) context.addIssue(`${part.trim()} is no network such as 10.1.0.0/16`);
          return range ?? [];
        }),
    )
    .describe(
      'comma-separated private networks that are allowed for deliveries, for files of imports and for identity providers, such as `10.1.0.0/16,fd12::/48`',
    ),
  WEBHOOK_PROXY_URL: z
    .url({ protocol: /^http$/ })
    .transform((text, context) => {
      try {
        return parseProxy(text);
      } catch {
        const message = 'has a user or password that is not percent-encoded';
        context.addIssue({ code: 'custom', message });
        return z.NEVER;
      }
    })
    .optional()
    .describe(
      'egress proxy (CONNECT) for all deliveries, for the files of imports and for identity providers; addresses are checked before the proxy is contacted',
    ),
});
