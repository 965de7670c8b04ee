/** Security: a link that a stranger makes a user open reads, and changes no row. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleWorld, startConsole } from '../support/console-world.ts';
import { fillPath, listOperations, WORDS_IN_PATHS } from '../support/every-operation.ts';
import { insertOwned } from '../support/tenant-world.ts';

let world: ConsoleWorld;
let owned: Readonly<Record<string, string>>;
beforeAll(async () => {
  world = await startConsole();
  owned = await insertOwned(world.api, world.api.a, 'read');
});
afterAll(() => world.close());

/** Each counts calls, or notes the last use of a session. */
const COUNTING: ReadonlySet<string> = new Set(['call_counts', 'console_sessions']);

/**
 * The stream does not end by itself. The download of an export is recorded in the audit log, and a stranger cannot make
 * its link, which is signed.
 */
const LEFT_OUT: ReadonlySet<string> = new Set(['/v1/stream', '/v1/audit_log_exports/{link}']);

/** Table → a hash of its rows. */
async function hashes(): Promise<Record<string, string>> {
  const { database } = world.api;
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
     order by 1`.execute(database);
  const hashed: Record<string, string> = {};
  for (const { name } of rows) {
    if (COUNTING.has(name)) continue;
    const { rows: found } = await sql<{ hash: string }>`
      select md5(coalesce(string_agg(t::text, ' ' order by t::text), '')) as hash
        from ${sql.table(name)} t`.execute(database);
    hashed[name] = found[0]?.hash ?? '';
  }
  return hashed;
}

test('every GET of a session leaves the database as it is', async () => {
  const { accountId, environmentId } = world.api.a;
  const { email } = await world.insertUser(world.api.a, 'account_admin');
  const cookie = await world.signIn(email);
  const before = await hashes();
  expect(Object.keys(before).length).toBeGreaterThan(60);
  let answered = 0;
  for (const operation of listOperations(world.api)) {
    if (operation.method !== 'GET' || LEFT_OUT.has(operation.path)) continue;
    const url = fillPath(operation, (name) =>
      name === 'account_id' ? String(accountId) : (WORDS_IN_PATHS[name] ?? owned[name] ?? '1'),
    );
    const answer = await world.call('GET', url, { cookie, workspace: environmentId });
    if (answer.statusCode === 200) answered++;
  }
  expect(answered).toBeGreaterThan(40);
  expect(await hashes()).toEqual(before);
});
