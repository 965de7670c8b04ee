/**
 * Access token (OAuth2) of a webhook, and claim for its fetch.
 *
 * Workers share the token, because a token server may count the tokens that it issues, and may end one when it issues
 * another. A worker claims the fetch before it asks the token server: so there is at most one at a time for a webhook,
 * over all workers. A claim ends by itself, because a worker may be killed. Each claim has a number; a worker whose
 * claim has ended cannot write. A token goes with its webhook: tokens of a deleted one are neither fetched nor kept.
 *
 * Every statement finds its rows by the primary keys (environment_id, webhook_id). Times are by the database's clock.
 * Used by `worker/src/delivery/access-tokens.ts`.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** A token that somebody has fetched. */
export interface StoredToken {
  /** Encrypted. */
  readonly token: string;
  /** The claim that fetched it: it names the token. */
  readonly number: number;
  /** Milliseconds for which it may be used, at least 0. */
  readonly leftMs: number;
}

export type TokenClaim =
  | ({ readonly outcome: 'usable' } & StoredToken)
  /** The caller fetches one, and reports the result before the claim's time is over. */
  | { readonly outcome: 'claimed'; readonly number: number }
  /** Another fetches one. */
  | { readonly outcome: 'busy' }
  /** There is a token of a later version of the webhook: the caller's credentials are not in force any more. */
  | { readonly outcome: 'outdated' };

export interface TokenRequest {
  readonly webhook: LaneKey;
  /** `endpoint_version` of the webhook whose credentials the caller has. */
  readonly endpointVersion: number;
  /** The number of a token that is not wanted any more, though its time is not over. */
  readonly rejected: number | null;
  /** The time of a claim. */
  readonly claimMs: number;
}

/** The token in force; else the claim to fetch one, if it is free. Safe to call at the same time. */
export async function claimToken(
  database: DatabaseOrTransaction,
  { webhook, endpointVersion, rejected, claimMs }: TokenRequest,
): Promise<TokenClaim> {
  const { rows } = await sql<{
    claimed: number | null;
    token: string | null;
    number: number | null;
    leftMs: number | null;
    isUsable: boolean | null;
    isOutdated: boolean | null;
  }>`
    with claimed as (
      insert into webhook_tokens as t (environment_id, webhook_id, fencing, fetching_until)
      select w.environment_id, w.webhook_id, 1, clock_timestamp() + ${claimMs} * interval '1 millisecond'
        from webhooks w
       where w.environment_id = ${webhook.environmentId} and w.webhook_id = ${webhook.webhookId} and w.deleted_at is null
      on conflict (environment_id, webhook_id) do update
         set fencing = t.fencing + 1, fetching_until = excluded.fetching_until
       where coalesce(t.endpoint_version, 0) <= ${endpointVersion}
         and (t.fetching_until is null or t.fetching_until <= clock_timestamp())
         and not ${isUsable(endpointVersion, rejected)}
      returning fencing
    )
    select claimed.fencing as claimed, token, token_fencing as number,
           (extract(epoch from usable_until - clock_timestamp()) * 1000)::float8 as "leftMs",
           ${isUsable(endpointVersion, rejected)} as "isUsable", t.endpoint_version > ${endpointVersion} as "isOutdated"
      from (select) as one left join claimed on true
      left join webhook_tokens t on t.environment_id = ${webhook.environmentId} and t.webhook_id = ${webhook.webhookId}`.execute(
    database,
  );
  const [row] = rows;
  if (row?.claimed) return { outcome: 'claimed', number: row.claimed };
  if (row?.isUsable && row.token !== null && row.number !== null)
    return {
      outcome: 'usable',
      token: row.token,
      number: row.number,
      leftMs: Math.max(0, row.leftMs ?? 0),
    };
  // Also if another has claimed it since this statement began.
  return { outcome: row?.isOutdated ? 'outdated' : 'busy' };
}

const isUsable = (endpointVersion: number, rejected: number | null) => sql`
  coalesce(t.token is not null and t.endpoint_version = ${endpointVersion} and t.usable_until > clock_timestamp()
           and t.token_fencing is distinct from ${rejected}::int, false)`;

/**
 * Ends a claim with the token that it has fetched.
 *
 * @param usableMs - the time for which it may be used from now on.
 */
export async function keepToken(
  database: DatabaseOrTransaction,
  webhook: LaneKey,
  claim: number,
  kept: {
    readonly token: string;
    readonly endpointVersion: number;
    readonly usableMs: number;
  },
): Promise<void> {
  await sql`
    update webhook_tokens
       set fetching_until = null, token = ${kept.token}, token_fencing = fencing, endpoint_version = ${kept.endpointVersion},
           usable_until = clock_timestamp() + ${kept.usableMs} * interval '1 millisecond'
     where environment_id = ${webhook.environmentId} and webhook_id = ${webhook.webhookId} and fencing = ${claim}
       and exists (select from webhooks w
                    where w.environment_id = ${webhook.environmentId} and w.webhook_id = ${webhook.webhookId} and w.deleted_at is null)`.execute(
    database,
  );
}

/** Ends a claim without a token. */
export async function releaseToken(
  database: DatabaseOrTransaction,
  webhook: LaneKey,
  claim: number,
): Promise<void> {
  await sql`
    update webhook_tokens set fetching_until = null
     where environment_id = ${webhook.environmentId} and webhook_id = ${webhook.webhookId} and fencing = ${claim}`.execute(
    database,
  );
}
