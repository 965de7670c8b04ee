/** Which way Postgres takes for the statements of sessions and second factors, where each account is one of thousands. */
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { findConsoleSession } from '@sluice/database/users/console-sessions';
import { giveUpSecondFactor, resetSecondFactor } from '@sluice/database/users/second-factors';
import { endUserSessions, removeUser } from '@sluice/database/users/user-changes';
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { fillAccounts } from '../support/account-fill.ts';
import { planOf } from '../support/explain.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const COUNT = 5_000;
const ORIGIN: ChangeOrigin = { actor: { type: 'system' } };
const HASH_OF_4 = createHash('sha256').update('4').digest();

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fillAccounts(database, COUNT);
});

test.each<[string, number, (database: Database) => Promise<unknown>]>([
  ['a session', 1, (db) => findConsoleSession(db, 4, HASH_OF_4, HASH_OF_4)],
  ['sessions that are ended', 4, (db) => endUserSessions(db, 4, 4, ORIGIN, NOW_MS)],
  [
    'a factor that is reset',
    4,
    (db) => resetSecondFactor(db, { accountId: 5, userId: 5 }, ORIGIN, NOW_MS),
  ],
  [
    'a factor that is removed',
    6,
    (db) => giveUpSecondFactor(db, { accountId: 6, userId: 6 }, { step: 1 }, ORIGIN, NOW_MS),
  ],
  ['a user who is removed', 9, (db) => removeUser(db, 7, 7, ORIGIN, NOW_MS)],
])('%s: every statement by index', async (_name, countMin, use) => {
  const sent = await statementsSentBy(() => use(database));
  expect(sent.length).toBeGreaterThanOrEqual(countMin);
  for (const statement of sent) {
    const nodes = await planOf(database, statement);
    const scanned = nodes.filter((node) => node['Node Type'] === 'Seq Scan');
    expect(
      scanned.map((node) => node['Relation Name']),
      statement.text,
    ).toEqual([]);
  }
});
