import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { sql, type RawBuilder } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { recordChange } from '../../../src/changes/record-change.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { checkAuditChain, verifyAuditChain } from '../../../src/verify/verify-audit-chains.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const COUNT = 12;

let database: Database;
let url: string;
let accountId = 0;

beforeAll(async () => {
  ({ database, url } = await createTestDatabase());
});
beforeEach(async () => {
  await sql`insert into accounts (account_id, name) values (${++accountId}, 'A')`.execute(database);
  for (let index = 1; index <= COUNT; index++) await rename(index);
});

async function rename(index: number): Promise<void> {
  await database.transaction().execute((transaction) =>
    recordChange(
      transaction,
      accountId,
      { actor: { type: 'user', userId: 1 }, ipAddr: '192.0.2.1', requestId: `req_${index}` },
      {
        objectType: 'account',
        objectId: accountId,
        objectName: 'Ünïcode "quoted"',
        before: { name: `name ${index}`, address: { line1: 'a', city: 'b' } },
        after: { name: `name ${index + 1}`, address: null, products: [1.5, 1e21, -0, 1e-7] },
      },
      NOW_MS + index,
    ),
  );
}

test('any values are the same when they come back, so that their hashes are', async () => {
  const values = fc.jsonValue({ stringUnit: 'binary' });
  const states = fc.array(fc.option(fc.record({ address: values, name: values })), {
    minLength: 1,
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(states, async (history) => {
      await sql`insert into accounts (account_id, name) values (${++accountId}, 'A')`.execute(
        database,
      );
      for (const [index, after] of history.entries()) {
        const before = history[index - 1] ?? null;
        if (before === null && after === null) continue;
        await database
          .transaction()
          .execute((transaction) =>
            recordChange(
              transaction,
              accountId,
              { actor: { type: 'system' }, userAgent: JSON.stringify(after) },
              { objectType: 'account', objectId: accountId, before, after },
              NOW_MS,
            ),
          );
      }
      expect(await findings()).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

/** As somebody does who owns the database. */
async function tamper(...statements: RawBuilder<unknown>[]): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    for (const statement of statements) await statement.execute(transaction);
  });
}

async function findings(): Promise<string[]> {
  const { findings: found } = await verifyAuditChain(database, accountId, () => {});
  return found.map(({ message }) => message);
}

test('an untouched chain is valid, and the check reports its progress', async () => {
  const progress: number[][] = [];
  const verified = await verifyAuditChain(database, accountId, (done, all) =>
    progress.push([done, all]),
  );
  expect(verified).toEqual({ entryCount: COUNT, findings: [] });
  expect(progress).toEqual([[COUNT, COUNT]]);
});

test('the findings do not depend on the page size, and each page reports progress', async () => {
  await tamper(
    sql`delete from audit_logs where account_id = ${accountId} and audit_log_id in (4, 8)`,
    sql`update audit_logs set user_id = 8 where account_id = ${accountId} and audit_log_id = 6`,
  );
  for (let pageSize = 1; pageSize <= COUNT; pageSize++) {
    const progress: number[] = [];
    const verified = await database
      .transaction()
      .execute((transaction) =>
        checkAuditChain(transaction, accountId, (done) => void progress.push(done), pageSize),
      );
    expect(verified.findings.map(({ message }) => message)).toEqual([
      'entry 4 is missing',
      'entry 6 differs from the recorded entry: its hash differs',
      'entry 8 is missing',
    ]);
    expect(progress).toHaveLength(Math.floor((COUNT - 2) / pageSize) + 1);
    expect(progress.at(-1)).toBe(COUNT - 2);
  }
});

describe('the check finds', () => {
  test('a value that was altered, in any column', async () => {
    const { rows } = await sql<{ name: string; type: string }>`
      select column_name as name, data_type as type from information_schema.columns
       where table_name = 'audit_logs' and is_generated = 'NEVER' and column_name <> 'account_id'`.execute(
      database,
    );
    expect(rows.length).toBeGreaterThan(15);
    const other: Record<string, RawBuilder<unknown>> = {
      text: sql`'created'`,
      jsonb: sql`'[{"attribute": "name", "from": null, "to": "x", "redacted": false}]'`,
      bytea: sql`sha256('x')`,
      'timestamp with time zone': sql`occurred_at - interval '1 millisecond'`,
    };
    for (const [index, { name, type }] of rows.entries()) {
      const value = name === 'actor_type' ? sql`'system'` : (other[type] ?? sql`999`);
      const id = 1 + (index % (COUNT - 1));
      const before = await findings();
      expect(before).toEqual([]);
      await sql`create table kept as select * from audit_logs where account_id = ${accountId}`.execute(
        database,
      );
      await tamper(
        sql`update audit_logs set ${sql.id(name)} = ${value} where account_id = ${accountId} and audit_log_id = ${id}`,
      );
      expect(await findings(), name).not.toEqual([]);
      const columns = sql.join(rows.map((row) => sql.id(row.name)));
      await tamper(
        sql`delete from audit_logs where account_id = ${accountId}`,
        sql`insert into audit_logs (account_id, ${columns}) select account_id, ${columns} from kept`,
        sql`drop table kept`,
      );
    }
  });

  test.each([
    ['in the middle', 5, 'entry 5 is missing'],
    ['the first', 1, 'entry 1 is missing'],
    ['the last', COUNT, `entry ${COUNT} is missing`],
  ])('an entry that was removed: %s', async (_where, id, message) => {
    await tamper(
      sql`delete from audit_logs where account_id = ${accountId} and audit_log_id = ${id}`,
    );
    expect(await findings()).toEqual([message]);
  });

  test('all entries removed', async () => {
    await tamper(sql`delete from audit_logs where account_id = ${accountId}`);
    expect(await findings()).toEqual([`entries 1 to ${COUNT} are missing`]);
  });

  test('an entry that was removed and the later ones moved up', async () => {
    await tamper(
      sql`delete from audit_logs where account_id = ${accountId} and audit_log_id = 5`,
      ...Array.from(
        { length: COUNT - 5 },
        (_, index) =>
          sql`update audit_logs set audit_log_id = ${5 + index}
               where account_id = ${accountId} and audit_log_id = ${6 + index}`,
      ),
    );
    expect(await findings()).not.toEqual([]);
  });

  test('two entries that changed places', async () => {
    await tamper(
      sql`update audit_logs set audit_log_id = -1 where account_id = ${accountId} and audit_log_id = 3`,
      sql`update audit_logs set audit_log_id = 3 where account_id = ${accountId} and audit_log_id = 7`,
      sql`update audit_logs set audit_log_id = 7 where account_id = ${accountId} and audit_log_id = -1`,
    );
    expect(await findings()).not.toEqual([]);
  });

  test('an entry that was put in after the end', async () => {
    await tamper(sql`
      insert into audit_logs (account_id, audit_log_id, occurred_at, actor_type, action, object_type, object_id,
                              changes, previous_hash, hash)
      select account_id, audit_log_id + 1, occurred_at, actor_type, action, object_type, object_id, changes, hash, hash
        from audit_logs where account_id = ${accountId} and audit_log_id = ${COUNT}`);
    expect(await findings()).toContain(`entries after ${COUNT} were put in`);
  });

  test('an entry with a hash that fits its altered values', async () => {
    // Entry 4 as a chain of its own would have it: right by itself, but not the one that entry 5 follows.
    const forged = ++accountId;
    await sql`insert into accounts (account_id, name) values (${forged}, 'A')`.execute(database);
    for (let index = 1; index <= 4; index++) await rename(index * 100);
    accountId = forged - 1;
    await tamper(sql`
      update audit_logs l set hash = f.hash, previous_hash = f.previous_hash
        from audit_logs f
       where l.account_id = ${accountId} and l.audit_log_id = 4 and f.account_id = ${forged} and f.audit_log_id = 4`);
    expect((await findings()).length).toBeGreaterThan(1);
    accountId = forged;
  });

  test('any one of many ways to change any rows', async () => {
    const id = fc.integer({ min: 1, max: COUNT });
    const change = fc.oneof(
      fc.record({ kind: fc.constant('remove' as const), id }),
      fc.record({ kind: fc.constant('alter' as const), id, value: fc.uuid() }),
      fc.record({ kind: fc.constant('copy' as const), id, from: id }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const undone = new Error('undone');
        let found: readonly unknown[] = [];
        let isChanged = false;
        const run = database.transaction().execute(async (transaction) => {
          await sql`set local session_replication_role = replica`.execute(transaction);
          for (const each of changes) {
            const at = sql`account_id = ${accountId} and audit_log_id = ${each.id}`;
            const statement =
              each.kind === 'remove'
                ? sql`delete from audit_logs where ${at} returning 1`
                : each.kind === 'alter'
                  ? sql`update audit_logs set request_id = ${each.value} where ${at} returning 1`
                  : sql`update audit_logs l set changes = f.changes, request_id = f.request_id, hash = f.hash
                          from audit_logs f
                         where l.account_id = ${accountId} and l.audit_log_id = ${each.id}
                           and f.account_id = ${accountId} and f.audit_log_id = ${each.from}
                           and f.hash <> l.hash
                        returning 1`;
            const { rows } = await statement.execute(transaction);
            isChanged ||= rows.length > 0;
          }
          ({ findings: found } = await checkAuditChain(transaction, accountId, () => {}));
          throw undone;
        });
        await expect(run).rejects.toBe(undone);
        expect(found.length > 0).toBe(isChanged);
      }),
      { numRuns: 40 },
    );
  });
});

const run = (databaseUrl: string) =>
  promisify(execFile)(
    process.execPath,
    [fileURLToPath(new URL('../../../../../scripts/verify.ts', import.meta.url))],
    { env: { ...process.env, DATABASE_URL: databaseUrl, NODE_NO_WARNINGS: '1' } },
  ).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );

test('the command ends with 0 for a valid log, and with 1 and the difference for an altered log', async () => {
  await sql`truncate audit_chains cascade`.execute(database);
  await rename(1);
  expect(await run(url)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^ok {5}audit log: \d+ accounts, 1 entries\n/),
  });
  await tamper(sql`update audit_logs set user_id = 8`);
  expect(await run(url)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('FAILED audit log'),
    // After two seconds there are lines of progress too.
    stderr: expect.stringContaining(
      `audit log: account ${accountId}: entry 1 differs from the recorded entry: its hash differs\n`,
    ),
  });
});
