import type { AttributeChange, HashedAuditEntry } from '@sluice/domain/accounts/audit-change';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  hashAuditEntry,
  recordChange,
  type ChangeOrigin,
} from '../../../src/changes/record-change.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import {
  changeWebhook,
  makeWebhook,
  removeWebhook,
} from '../../../src/webhooks/webhook-changes.ts';
import { findWebhook, type Webhook, type WebhookSettings } from '../../../src/webhooks/webhooks.ts';

const origin: ChangeOrigin = {
  actor: { type: 'user', userId: 7 },
  credentialId: 9,
  ipAddr: '192.0.2.1',
  userAgent: 'agent',
  requestId: 'req_1',
};
const NOW_MS = Date.parse('2026-03-01T12:00:00.123Z');

let database: Database;
let accountCount = 0;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

/** An account of its own with one workspace, of the same number. */
async function openAccount(): Promise<number> {
  const accountId = ++accountCount;
  await sql`insert into accounts (account_id, name) values (${accountId}, 'A')`.execute(database);
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    values (${accountId}, ${accountId}, 'One', 'key')`.execute(database);
  return accountId;
}

const rename = (accountId: number, from: string, to: string, nowMs = NOW_MS) =>
  database.transaction().execute((transaction) =>
    recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'account',
        objectId: accountId,
        before: { name: from },
        after: { name: to },
      },
      nowMs,
    ),
  );

interface Row extends HashedAuditEntry {
  readonly occurredAt: Date;
  readonly previousHash: string;
  readonly hash: string;
  readonly changedAttributes: string[];
}

async function rowsOf(accountId: number): Promise<Row[]> {
  const { rows } = await sql<Row>`
    select account_id::int as "accountId", audit_log_id as "auditLogId", occurred_at as "occurredAt",
           (extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs", action,
           object_type as "objectType", object_id as "objectId", object_name as "objectName",
           environment_id as "environmentId", actor_type as "actorType", user_id as "userId",
           service_account_id as "serviceAccountId", credential_id::int as "credentialId",
           ip_addr as "ipAddr", user_agent as "userAgent", request_id as "requestId",
           run_id as "runId", changes, changed_attributes as "changedAttributes",
           encode(previous_hash, 'hex') as "previousHash", encode(hash, 'hex') as hash
      from audit_logs where account_id = ${accountId} order by audit_log_id`.execute(database);
  return rows;
}

describe('a recorded change', () => {
  test('has the changed values, the actor and the call', async () => {
    const accountId = await openAccount();
    expect(await rename(accountId, 'A', 'B')).toBe(1);
    expect(await rowsOf(accountId)).toMatchObject([
      {
        occurredAt: new Date(NOW_MS),
        action: 'updated',
        objectType: 'account',
        objectId: String(accountId),
        actorType: 'user',
        userId: 7,
        serviceAccountId: null,
        credentialId: 9,
        ipAddr: '192.0.2.1',
        userAgent: 'agent',
        requestId: 'req_1',
        changes: [{ attribute: 'name', from: 'A', to: 'B', redacted: false }],
        changedAttributes: ['name'],
        previousHash: '0'.repeat(64),
      },
    ]);
  });

  test('I37: is gone with the transaction that made it, and leaves no gap', async () => {
    const accountId = await openAccount();
    await rename(accountId, 'A', 'B');
    const failure = new Error('the change did not work out');
    const attempt = database.transaction().execute(async (transaction) => {
      await recordChange(
        transaction,
        accountId,
        origin,
        { objectType: 'account', objectId: accountId, before: null, after: { name: 'C' } },
        NOW_MS,
      );
      throw failure;
    });
    await expect(attempt).rejects.toBe(failure);
    await rename(accountId, 'B', 'C');
    expect((await rowsOf(accountId)).map((row) => row.auditLogId)).toEqual([1, 2]);
  });

  test('with equal values is not recorded', async () => {
    const accountId = await openAccount();
    expect(await rename(accountId, 'A', 'A')).toBeUndefined();
    expect(await rowsOf(accountId)).toEqual([]);
  });

  test('never stands before an earlier one, though the clock is set back', async () => {
    const accountId = await openAccount();
    await rename(accountId, 'A', 'B');
    await rename(accountId, 'B', 'C', NOW_MS - 60_000);
    expect((await rowsOf(accountId)).map((row) => row.occurredAtMs)).toEqual([NOW_MS, NOW_MS]);
  });

  test('I37: of a secret leaves it nowhere in the row', async () => {
    const accountId = await openAccount();
    await database.transaction().execute((transaction) =>
      recordChange(
        transaction,
        accountId,
        origin,
        {
          objectType: 'environment',
          objectId: accountId,
          before: { webhook_signing_key: 'first secret' },
          after: { webhook_signing_key: 'second secret' },
        },
        NOW_MS,
      ),
    );
    const { rows } = await sql<{ text: string }>`
      select audit_logs::text as text from audit_logs where account_id = ${accountId}`.execute(
      database,
    );
    expect(rows[0]?.text).toContain('webhook_signing_key');
    expect(rows[0]?.text).not.toContain('secret');
  });

  test('cannot be altered or removed by a statement', async () => {
    const accountId = await openAccount();
    await rename(accountId, 'A', 'B');
    for (const statement of [
      sql`update audit_logs set user_id = 8 where account_id = ${accountId}`,
      sql`delete from audit_logs where account_id = ${accountId}`,
    ]) {
      await expect(statement.execute(database)).rejects.toThrow('append-only');
    }
  });
});

test('I37: changes made at the same time are one chain without a gap, each account its own', async () => {
  const [first, second] = [await openAccount(), await openAccount()];
  await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      rename(index % 2 === 0 ? first : second, 'A', `name ${index}`, NOW_MS + index),
    ),
  );
  for (const accountId of [first, second]) {
    const rows = await rowsOf(accountId);
    expect(rows.map((row) => row.auditLogId)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
    let previousHash = '0'.repeat(64);
    for (const { occurredAt: _at, changedAttributes: _names, hash, ...row } of rows) {
      const { previousHash: stored, ...entry } = row;
      expect(stored).toBe(previousHash);
      expect(hashAuditEntry(entry, stored)).toBe(hash);
      previousHash = hash;
    }
  }
});

test('any sequence of changes of webhooks, replayed from the log, gives the rows that are there', async () => {
  const texts = fc.string({ minLength: 1 }).filter((text) => !text.includes('\0'));
  const settings = fc.record({
    name: texts,
    endpoint: texts,
    events: fc.array(fc.constantFrom('email_opened', 'email_clicked'), { minLength: 1 }),
    disabled: fc.boolean(),
    fullResolution: fc.boolean(),
    withContent: fc.boolean(),
    standardWebhooks: fc.boolean(),
    signing: fc.constantFrom('sluice' as const, 'standard_webhooks' as const, 'none' as const),
    disableAfterDays: fc.option(fc.integer({ min: 1, max: 30 })),
    rateLimitPerSecond: fc.option(fc.integer({ min: 1, max: 10_000 })),
    windowMax: fc.option(fc.integer({ min: 1, max: 1_000 })),
    ordering: fc.constantFrom('person' as const, 'strict' as const),
    customHeaders: fc.constant(null),
    endpointCredentials: fc.constant(null),
    eventNames: fc.option(fc.array(texts, { minLength: 1 })),
    withImports: fc.boolean(),
    withLate: fc.boolean(),
    withPersonAttributes: fc.boolean(),
    attributeFilters: fc.option(
      fc.array(fc.record({ field: texts, operator: fc.constant('exists' as const) }), {
        minLength: 1,
      }),
    ),
  });
  const step = fc.oneof(
    fc.record({ kind: fc.constant('make' as const), settings }),
    fc.record({
      kind: fc.constant('change' as const),
      which: fc.nat(3),
      changes: settings.chain((all) =>
        fc.subarray(Object.keys(all)).map((keys) => pick(all, keys)),
      ),
    }),
    fc.record({ kind: fc.constant('remove' as const), which: fc.nat(3) }),
  );

  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const accountId = await openAccount();
      const made: number[] = [];
      for (const each of steps) {
        if (each.kind === 'make') {
          const webhook = await makeWebhook(database, accountId, each.settings, origin, NOW_MS);
          made.push((webhook as Webhook).webhookId);
          continue;
        }
        const webhookId = made[each.which] ?? 0;
        if (each.kind === 'change')
          await changeWebhook(database, accountId, webhookId, each.changes, origin, NOW_MS);
        else await removeWebhook(database, accountId, webhookId, origin, NOW_MS);
      }
      const rows = await rowsOf(accountId);
      for (const webhookId of made) {
        const webhook = await findWebhook(database, accountId, webhookId);
        const replayed = replay(rows.filter((row) => row.objectId === String(webhookId)));
        expect(replayed && withoutNulls(replayed)).toEqual(
          webhook &&
            withoutNulls({
              name: webhook.name,
              endpoint: webhook.endpoint,
              events: webhook.events,
              disabled: webhook.disabled,
              full_resolution: webhook.fullResolution,
              with_content: webhook.withContent,
              standard_webhooks: webhook.standardWebhooks,
              signing: webhook.signing,
              disable_after_days: webhook.disableAfterDays,
              rate_limit_per_second: webhook.rateLimitPerSecond,
              window_max: webhook.windowMax,
              ordering: webhook.ordering,
              attribute_filters: webhook.attributeFilters,
              event_names: webhook.eventNames,
              with_imports: webhook.withImports,
              with_late: webhook.withLate,
              with_person_attributes: webhook.withPersonAttributes,
            }),
        );
      }
    }),
    { numRuns: 25 },
  );
});

const pick = (all: WebhookSettings, keys: readonly string[]): Partial<WebhookSettings> =>
  Object.fromEntries(Object.entries(all).filter(([key]) => keys.includes(key)));

/** A field that is left out counts as null. */
const withoutNulls = (state: object): object =>
  Object.fromEntries(Object.entries(state).filter(([, value]) => value !== null));

/** The object after its entries; undefined if it was deleted. */
function replay(rows: readonly Row[]): Record<string, unknown> | undefined {
  let state: Record<string, unknown> | undefined;
  for (const { action, changes } of rows) {
    if (action === 'created') state = {};
    for (const { attribute, to } of changes as AttributeChange[]) {
      if (state) state[attribute] = to;
    }
    if (action === 'deleted') state = undefined;
  }
  return state;
}
