/** Every operation with a change, with its request: for tests over all of them. */
import { sql } from 'kysely';
import { type ApiUnderTest } from './api-under-test.ts';
import { insertToken } from './inserted-rows.ts';
import { fillPath, keyOf, listOperations, type Operation } from './every-operation.ts';
import { openSessions } from './locked-out-user.ts';
import { insertOwned, ownedBody } from './tenant-world.ts';

/** Gives A one of everything, and the operator's staff a token and a partner. @returns A's, by path parameter. */
export async function insertChangeable(
  api: ApiUnderTest,
): Promise<Readonly<Record<string, string>>> {
  const owned = await insertOwned(api, api.a, 'a');
  // So that another may be started.
  await sql`update webhook_replays set state = 'done', ended_at = now()`.execute(api.database);
  await insertToken(api.database, api.a.accountId, STAFF, { scopes: ['partners:write'] });
  await sql`
    insert into partners (partner_id, name, created_at) values ('partner_1', 'P', now())`.execute(
    api.database,
  );
  return { ...owned, partner_id: 'partner_1' };
}

const STAFF = 'sa_staff';

/** The request of an operation as A, or as staff if it is theirs. */
export const requestOf = (
  api: ApiUnderTest,
  operation: Operation,
  owned: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
) => ({
  method: operation.method,
  url: fillPath(operation, (name) => owned[name]!),
  headers: {
    authorization: `Bearer ${operation.path.includes('{partner_id}') ? STAFF : keyOf(operation, api.a)}`,
    ...headers,
    ...(operation.takesBody && { 'content-type': 'application/json' }),
  },
  ...(operation.takesBody && { payload: JSON.stringify(bodyOf(operation)) }),
});

/** All operations that are no reads. An operation that ends an object comes after operations that need it. */
export const listChanging = (api: ApiUnderTest): Operation[] =>
  listOperations(api)
    .filter(({ method, path }) => method !== 'GET' && !ELSEWHERE.includes(path))
    .toSorted((one, other) => rankOf(one) - rankOf(other));

/** A part is deleted before its whole. */
const rankOf = ({ method, path }: Operation): number =>
  method === 'DELETE' ? 2 + 1 / path.length : Number(/cancel|promote/.test(path));

/** A token's last use is written beside the answer, whenever that is done. */
const BESIDE_THE_ANSWER = ['last_used_at', 'last_used_ip'];

/** Every row of every table, without the rows of the keys themselves and of counts of calls. */
export async function snapshotOf(api: ApiUnderTest): Promise<string> {
  const { rows: tables } = await sql<{ name: string }>`
    select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname not in ('idempotency_keys', 'call_counts')
     order by 1`.execute(api.database);
  const contents = tables.map(
    ({ name }) =>
      sql`
        select ${name} as name, coalesce(jsonb_agg(kept.row order by kept.row::text), '[]') as rows
          from (select to_jsonb(t) - ${BESIDE_THE_ANSWER}::text[] as row from ${sql.table(name)} t) kept`,
  );
  const { rows } = await sql`${sql.join(contents, sql` union all `)}`.execute(api.database);
  return JSON.stringify(rows);
}

/** No entry can be committed while it lasts. */
export async function whileNothingIsAudited<Result>(
  api: Pick<ApiUnderTest, 'database'>,
  work: () => Promise<Result>,
): Promise<Result> {
  await sql`
    create function refuse_entry() returns trigger language plpgsql as
      $$begin raise exception 'no entry today'; end$$`.execute(api.database);
  await sql`
    create constraint trigger refuse_entry after insert on audit_logs
      deferrable initially deferred for each row execute function refuse_entry()`.execute(
    api.database,
  );
  try {
    return await work();
  } finally {
    await sql`drop function refuse_entry() cascade`.execute(api.database);
  }
}

/** Bodies that buy something; of accounts of the payment method type that the path is for. */
const PURCHASES: Readonly<Record<string, { rail: 'card' | 'invoiced'; body: object }>> = {
  addons: { rail: 'card', body: { skus: { add: ['price_addon_ip_month'] } } },
  'ai_credits/invoiced_purchase': { rail: 'invoiced', body: { quantity: 1_000 } },
  'ai_credits/payment_intent': { rail: 'card', body: { quantity: 1_000 } },
  'builder_credits/payment_intent': { rail: 'card', body: { quantity: 1_000 } },
  'credits/purchase': { rail: 'invoiced', body: { llm: { quantity: 1_000 } } },
  'downgrade-to-builder': { rail: 'card', body: {} },
  'inbox_previews/invoiced_purchase': { rail: 'invoiced', body: { pack: 'pack_100' } },
  'inbox_previews/payment_intent': { rail: 'card', body: { pack: 'pack_100' } },
  'plans/{plan_id}': { rail: 'invoiced', body: {} },
};

const purchaseOf = ({ path }: Pick<Operation, 'path'>) =>
  PURCHASES[path.split('/billing/')[1] ?? ''];

/** A new purchase needs an empty lane, and the plan that its route is for; a replay must run to be cancelled, a probe be far away to be made, a session be open to be ended. */
export async function prepareChange(
  api: ApiUnderTest,
  operation: Pick<Operation, 'path'>,
): Promise<void> {
  if (operation.path.endsWith('/replays/{replay_id}/cancel')) {
    await sql`update webhook_replays set state = 'done', ended_at = now()`.execute(api.database);
    await sql`
      update webhook_replays set state = 'running', ended_at = null
       where replay_id = (select min(replay_id) from webhook_replays where environment_id = ${api.a.environmentId})`.execute(
      api.database,
    );
  }
  if (operation.path.endsWith('/probe')) {
    await sql`
      update lanes set next_probe_at = ${new Date(api.clock.nowMs + 3_600_000)} where state = 'failing'`.execute(
      api.database,
    );
  }
  if (operation.path.endsWith('/sessions')) await openSessions(api, api.a);
  const purchase = purchaseOf(operation);
  if (!purchase) return;
  const isTrial = operation.path.endsWith('downgrade-to-builder');
  await sql`update runs set status = 'failed', finished_at = now()`.execute(api.database);
  await sql`
    update accounts
       set billing_rail = ${purchase.rail}, plan_id = ${isTrial ? 'essentials_month' : 'premium_year'},
           plan_tier = ${isTrial ? 'essentials' : 'premium'}, plan_status = ${isTrial ? 'trialing' : 'active'}
     where account_id = ${api.a.accountId}`.execute(api.database);
}

function bodyOf(operation: Operation): object {
  if (operation.path.endsWith('/replays')) return { since: 0 };
  if (operation.path.endsWith('/secrets')) return {};
  // The present value would be no change.
  return purchaseOf(operation)?.body ?? ownedBody(operation, 'another');
}

/**
 * Operations that cannot be shown here: they need the payment provider to answer, its signature, or the mailed code
 * (below).
 */
const ELSEWHERE = [
  '/v1/accounts/{account_id}/billing/payment_method/default',
  '/v1/vendor_events',
  '/v1/account_signup/code',
];
/** No worker runs here: the purchase is started, and calls that wait for its invoice or its end report it. */
const WAITING: Readonly<Record<string, number>> = {
  'ai_credits/payment_intent': 503,
  'builder_credits/payment_intent': 503,
  'inbox_previews/payment_intent': 503,
  'plans/{plan_id}': 409,
};
export const waitingStatusOf = ({ path }: Operation) => WAITING[path.split('/billing/')[1] ?? ''];
