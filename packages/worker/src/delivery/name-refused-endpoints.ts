/**
 * Names, when a worker starts, each webhook whose endpoint it will refuse: after an upgrade, or a change of
 * `WEBHOOK_ALLOW_PRIVATE_ADDRESSES`, its deliveries would fail one by one and only their owner would see why.
 *
 * Names of hosts are looked up one after another, in the background, because look-ups hold threads that deliveries need.
 */
import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import type { WebhookEndpoint } from '@sluice/database/webhooks/webhook-endpoints';
import { judgeAddress, type AddressPolicy } from '@sluice/domain/delivery/network-address';
import type { Logger } from '@sluice/platform/process/logger';

export interface NameRefusedDeps {
  /** At most `countMax` webhooks behind `after`, in the order of their keys. */
  readonly listEndpoints: (
    after: WebhookEndpoint | undefined,
    countMax: number,
  ) => Promise<readonly WebhookEndpoint[]>;
  readonly resolve: (hostname: string) => Promise<readonly LookupAddress[]>;
  readonly policy: AddressPolicy;
  readonly logger: Pick<Logger, 'warn'>;
  readonly signal: AbortSignal;
}

const PAGE_COUNT = 500;
/** Look-ups of one start; beyond it only literal addresses are judged. */
const LOOKUP_COUNT_MAX = 1_000;

/** Names them in the background. If private addresses are allowed in production, it warns of that instead. */
export function warnOfEndpoints({
  policy,
  isProduction,
  ...deps
}: NameRefusedDeps & { readonly isProduction: boolean }): void {
  const { logger, signal } = deps;
  if (policy.allowPrivate) {
    if (isProduction)
      logger.warn(
        'WEBHOOK_ALLOW_PRIVATE_ADDRESSES is true, so every account can reach private addresses of this network through webhooks and imports; WEBHOOK_ALLOWED_NETWORKS allows single networks',
      );
    return;
  }
  nameRefusedEndpoints({ policy, ...deps }).catch((error: unknown) => {
    if (!signal.aborted)
      logger.warn(
        { error },
        'the search for webhooks at refused addresses failed; their deliveries fail as before, and the next start searches again',
      );
  });
}

/** @returns the number of webhooks that were named. */
export async function nameRefusedEndpoints(deps: NameRefusedDeps): Promise<number> {
  const { listEndpoints, logger, signal } = deps;
  const verdicts = new Map<string, boolean>();
  let namedCount = 0;
  let last: WebhookEndpoint | undefined;
  do {
    const page = await listEndpoints(last, PAGE_COUNT);
    for (const webhook of page) {
      if (signal.aborted) return namedCount;
      if (!(await isRefused(deps, verdicts, webhook.endpoint))) continue;
      namedCount++;
      const { environmentId, webhookId } = webhook;
      logger.warn(
        { environmentId, webhookId, host: new URL(webhook.endpoint).host },
        'the endpoint of a webhook is at an address that is refused; its deliveries fail until WEBHOOK_ALLOWED_NETWORKS or WEBHOOK_ALLOW_PRIVATE_ADDRESSES allows it',
      );
    }
    last = page.at(-1);
  } while (last !== undefined);
  return namedCount;
}

async function isRefused(
  { resolve, policy }: NameRefusedDeps,
  verdicts: Map<string, boolean>,
  endpoint: string,
): Promise<boolean> {
  const hostname = URL.parse(endpoint)?.hostname.replace(/^\[(.*)\]$/, '$1');
  if (hostname === undefined) return false;
  const isForbidden = (address: string) => judgeAddress(address, policy).outcome === 'refused';
  if (isIP(hostname) !== 0) return isForbidden(hostname);
  const known = verdicts.get(hostname);
  if (known !== undefined) return known;
  if (verdicts.size >= LOOKUP_COUNT_MAX) return false;
  // A name that cannot be looked up is not refused, and may be found later.
  const addresses = await resolve(hostname).catch(() => []);
  const verdict = addresses.length > 0 && addresses.every(({ address }) => isForbidden(address));
  verdicts.set(hostname, verdict);
  return verdict;
}
