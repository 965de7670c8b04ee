/** Tokens that the guard of the account routes remembers for a moment. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { createAuthenticate } from '../../../src/auth/account-guard.ts';
import { SECRET } from '../support/api-under-test.ts';
import { insertTenant } from '../support/inserted-rows.ts';

const COUNT_MAX = 10_000;
/** Questions of Postgres at the same time. */
const AT_ONCE = 100;
/** On a busy machine. */
const TIMEOUT_MS = 240_000;

test(
  'at most 10,000 tokens are remembered, and each forgotten one is looked up again',
  async () => {
    const { database } = await createTestDatabase();
    const { accountId } = await insertTenant(database, 'a');
    await sql`
    with service_account as (
      insert into service_accounts (account_id, name, role) values (${accountId}, 'test', 'member')
      returning account_id, service_account_id)
    insert into api_credentials (account_id, service_account_id, kind, name, secret_hash, secret_hint)
    select account_id, service_account_id, 'service_account', 'test', sha256(('sa_live_' || n)::bytea), 'hint'
      from service_account cross join generate_series(1, ${COUNT_MAX}) n`.execute(database);
    const authenticate = createAuthenticate({
      database,
      secret: SECRET,
      now: () => 1_764_000_000_000,
      monotonicNow: () => 0,
    });
    const isOpen = async (n: number): Promise<boolean> =>
      (await authenticate(`Bearer sa_live_${n}`)) !== undefined;
    for (let first = 1; first <= COUNT_MAX; first += AT_ONCE) {
      const opened = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, index) => isOpen(first + index)),
      );
      expect(opened).not.toContain(false);
    }
    await sql`update api_credentials set revoked_at = now() where account_id = ${accountId}`.execute(
      database,
    );
    expect(await isOpen(1)).toBe(true);
    expect(await isOpen(COUNT_MAX)).toBe(true);
    expect(await isOpen(COUNT_MAX + 1)).toBe(false);
    expect(await isOpen(1)).toBe(false);
    expect(await isOpen(COUNT_MAX)).toBe(false);
  },
  TIMEOUT_MS,
);
