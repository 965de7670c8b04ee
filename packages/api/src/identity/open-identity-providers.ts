/** A process's access to identity providers, by its settings. Also to the DNS that proves email domains. */
import type { outgoingSettings } from '@sluice/platform/outgoing/outgoing-settings';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import { Resolver } from 'node:dns/promises';
import type { z } from 'zod';
import { type ReadTextRecords, readTextRecordsBy } from './domain-records.ts';
import type { ProviderClient } from './provider-client.ts';
import { createProviderFetch } from './provider-fetch.ts';

const DNS_OPTIONS = { timeout: 2_000, tries: 2 } as const;

/** @param now - milliseconds since 1970, by which tokens expire. */
export function openIdentityProviders(
  settings: z.infer<typeof outgoingSettings>,
  now: () => number,
): { readonly providers: ProviderClient; readonly readTextRecords: ReadTextRecords } {
  const policy = {
    allowPrivate: settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES,
    allowedNetworks: settings.WEBHOOK_ALLOWED_NETWORKS,
  };
  const connector = createVettedConnector(policy, undefined, settings.WEBHOOK_PROXY_URL);
  // With its library, a megabyte: most installations never see such a sign-in.
  let opening: Promise<ProviderClient> | undefined;
  const opened = (): Promise<ProviderClient> =>
    (opening ??= import('./provider-client.ts').then(({ createProviderClient }) =>
      createProviderClient(createProviderFetch(connector), now),
    ));
  return {
    providers: {
      begin: async (...given) => (await opened()).begin(...given),
      finish: async (...given) => (await opened()).finish(...given),
      signOutUrl: async (...given) => (await opened()).signOutUrl(...given),
    },
    readTextRecords: readTextRecordsBy(new Resolver(DNS_OPTIONS)),
  };
}
