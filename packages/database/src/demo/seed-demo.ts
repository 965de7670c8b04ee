/**
 * The demo's accounts: one on each payment method type, and one without a plan.
 *
 * For the last, `npm start` puts a card on file and buys a plan (`standalone/src/subscribe-demo.ts`). Each has a
 * workspace and credentials that are in the documentation, so that everything can be tried at once. The credentials are
 * public, so they must not work on an address that others can reach: the caller decides which of the two functions the
 * address allows.
 */
import { createHash } from 'node:crypto';
import { SCOPES } from '@sluice/domain/accounts/account';
import { type DEMO_ACCOUNT_IDS, demoOwnerEmail } from '@sluice/domain/accounts/demo-account';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { insertReceipt } from '../billing/receipts.ts';

export const DEMO = {
  accountId: 1,
  environmentId: 1,
  writeKey: 'demo_write_key',
  siteId: 'demo_site',
  apiKey: 'demo_api_key',
  appKey: 'demo_app_key',
  signingKey: 'demo_signing_key',
  /** Of a service account that may do everything in account 1, by card. */
  accountToken: 'sa_sandbox_demo',
  /** The same in account 2, by invoice. */
  invoicedAccountId: 2,
  invoicedEnvironmentId: 2,
  invoicedAccountToken: 'sa_sandbox_demo_invoiced',
  /** The same in account 3, by card, with a card on file and a subscription. */
  paidAccountId: 3,
  paidEnvironmentId: 3,
  paidAccountToken: 'sa_sandbox_demo_paid',
  paidWriteKey: 'demo_paid_write_key',
  paidSiteId: 'demo_paid_site',
  paidApiKey: 'demo_paid_api_key',
  paidAppKey: 'demo_paid_app_key',
  paidSigningKey: 'demo_paid_signing_key',
  /** Of account 1: /settings/receipts/demo_receipt */
  receiptId: 'demo_receipt',
} as const;

interface DemoAccount {
  /** Of the workspace, the owner and the service account too. */
  readonly accountId: (typeof DEMO_ACCOUNT_IDS)[number];
  readonly name: string;
  readonly rail: 'card' | 'invoiced';
  readonly plan: 'premium' | 'builder';
  readonly token: string;
  readonly signingKey: string;
  /** Of its workspace. */
  readonly keys: readonly {
    readonly kind: 'pipelines' | 'track' | 'app';
    readonly siteId: string | null;
    readonly secret: string;
  }[];
}

const DEMO_ACCOUNT: DemoAccount = {
  accountId: DEMO.accountId,
  name: 'Demo',
  rail: 'card',
  plan: 'premium',
  token: DEMO.accountToken,
  signingKey: DEMO.signingKey,
  keys: [
    { kind: 'pipelines', siteId: null, secret: DEMO.writeKey },
    { kind: 'track', siteId: DEMO.siteId, secret: DEMO.apiKey },
    { kind: 'app', siteId: null, secret: DEMO.appKey },
  ],
};

/** In the order in which they are locked. */
const ACCOUNTS: readonly DemoAccount[] = [
  {
    accountId: DEMO.paidAccountId,
    name: 'Demo, with a plan and a card',
    rail: 'card',
    // Until the plan is bought.
    plan: 'builder',
    token: DEMO.paidAccountToken,
    signingKey: DEMO.paidSigningKey,
    keys: [
      { kind: 'pipelines', siteId: null, secret: DEMO.paidWriteKey },
      { kind: 'track', siteId: DEMO.paidSiteId, secret: DEMO.paidApiKey },
      { kind: 'app', siteId: null, secret: DEMO.paidAppKey },
    ],
  },
  {
    accountId: DEMO.invoicedAccountId,
    name: 'Demo, invoiced',
    rail: 'invoiced',
    plan: 'premium',
    token: DEMO.invoicedAccountToken,
    signingKey: DEMO.signingKey,
    keys: [],
  },
  DEMO_ACCOUNT,
];

const PLANS = {
  premium: { id: 'premium_month', name: 'Premium' },
  builder: { id: 'builder', name: 'Builder' },
} as const;

const RECEIPT = {
  receiptId: DEMO.receiptId,
  number: 'DEMO-0001',
  issuedAt: new Date('2026-01-01T00:00:00Z'),
  billedTo: 'Demo',
  lines: [{ description: '500 inbox previews', quantity: 1, amount: 4900 }],
  total: 4900,
  currency: 'usd',
  paymentMethod: 'Visa ending in 4242',
};

/** They are public: a process that accepts them checks the address of the caller. */
export const DEMO_SECRETS: readonly string[] = ACCOUNTS.flatMap(({ token, keys }) => [
  token,
  ...keys.map(({ secret }) => secret),
]);

/** Creates the demo's accounts, or puts their credentials in force again. May be called at every start. */
export async function seedDemoWorkspace(database: Database): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    for (const account of ACCOUNTS) {
      if (!(await isForDemo(transaction, account))) continue;
      await seedAccount(transaction, account);
      await seedKeys(transaction, account);
      if (account === DEMO_ACCOUNT) await insertReceipt(transaction, account.accountId, RECEIPT);
    }
    await advanceIdentities(transaction);
  });
}

async function seedKeys(
  transaction: DatabaseOrTransaction,
  { accountId, keys }: DemoAccount,
): Promise<void> {
  await sql`
    insert into api_credentials (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint)
    select ${accountId}, ${accountId}, kind, 'Demo', site_id, secret_hash, secret_hint
    from unnest(
      ${keys.map(({ kind }) => kind)}::text[],
      ${keys.map(({ siteId }) => siteId)}::text[],
      ${keys.map(({ secret }) => hash(secret))}::bytea[],
      ${keys.map(({ secret }) => secret.slice(-4))}::text[]
    ) as demo (kind, site_id, secret_hash, secret_hint)
    on conflict (kind, secret_hash, coalesce(site_id, '')) do update
      set revoked_at = null
      where api_credentials.account_id = ${accountId}`.execute(transaction);
}

async function seedAccount(
  transaction: DatabaseOrTransaction,
  { accountId, name, rail, plan, token, signingKey }: DemoAccount,
): Promise<void> {
  await sql`
    insert into accounts
      (account_id, name, is_sandbox, plan_id, plan_name, plan_tier, billing_rail, billing_email)
    values (${accountId}, ${name}, true, ${PLANS[plan].id}, ${PLANS[plan].name}, ${plan}, ${rail}, 'demo@example.com')
    on conflict (account_id) do nothing`.execute(transaction);
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    values (${accountId}, ${accountId}, ${name}, ${signingKey})
    on conflict (environment_id) do nothing`.execute(transaction);
  await sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    values (${accountId}, ${accountId}, ${demoOwnerEmail(accountId)}, 'Demo', 'Owner', 'account_admin', 'active')
    on conflict do nothing`.execute(transaction);
  await sql`
    insert into memberships (account_id, user_id, environment_id)
    values (${accountId}, ${accountId}, ${accountId})
    on conflict do nothing`.execute(transaction);
  await sql`
    update accounts set owner_user_id = ${accountId}
     where account_id = ${accountId} and owner_user_id is null`.execute(transaction);
  await sql`
    insert into service_accounts (account_id, service_account_id, name, role, created_by_user_id)
    values (${accountId}, ${accountId}, 'Demo', 'account_admin', ${accountId})
    on conflict do nothing`.execute(transaction);
  await sql`
    insert into api_credentials
      (account_id, service_account_id, kind, name, secret_hash, secret_hint, scopes)
    values (${accountId}, ${accountId}, 'service_account', 'Demo', ${hash(token)}, ${token.slice(-4)},
            ${SCOPES}::text[])
    on conflict (kind, secret_hash, coalesce(site_id, '')) do update
      set revoked_at = null
      where api_credentials.account_id = ${accountId}`.execute(transaction);
}

/**
 * False if the number belongs to somebody's account from before there was a demo: the demo's keys must never open
 * that. A demo that was seeded before is recognised by its keys, revoked ones included.
 */
async function isForDemo(
  transaction: DatabaseOrTransaction,
  { accountId }: DemoAccount,
): Promise<boolean> {
  const { rows } = await sql<{ isForDemo: boolean }>`
    select not exists (select from accounts where account_id = ${accountId})
        or exists (select from api_credentials
                    where account_id = ${accountId}
                      and secret_hash = any(${DEMO_SECRETS.map(hash)}::bytea[])) as "isForDemo"`.execute(
    transaction,
  );
  return rows[0]?.isForDemo === true;
}

/** Takes the demo credentials out of force, if there are any. Index: `api_credentials_by_secret`. */
export async function revokeDemoCredentials(database: DatabaseOrTransaction): Promise<void> {
  await sql`
    update api_credentials set revoked_at = now()
    where account_id = any(${ACCOUNTS.map(({ accountId }) => accountId)}::bigint[])
      and secret_hash = any(${DEMO_SECRETS.map(hash)}::bytea[])
      and revoked_at is null`.execute(database);
}

/**
 * Rows with ids of our choosing do not move the sequences; the next account must not collide with
 * the demo's. Never backwards: an id that was used and deleted must not come again.
 */
async function advanceIdentities(transaction: DatabaseOrTransaction): Promise<void> {
  await sql`
    select setval(sequence, greatest(newest, pg_sequence_last_value(sequence)))
    from (values
      (pg_get_serial_sequence('accounts', 'account_id')::regclass,
       (select max(account_id) from accounts)),
      (pg_get_serial_sequence('environments', 'environment_id')::regclass,
       (select max(environment_id) from environments)::bigint),
      (pg_get_serial_sequence('users', 'user_id')::regclass, (select max(user_id) from users)::bigint),
      (pg_get_serial_sequence('service_accounts', 'service_account_id')::regclass,
       (select max(service_account_id) from service_accounts)::bigint)
    ) as identity (sequence, newest)`.execute(transaction);
}

const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest();
