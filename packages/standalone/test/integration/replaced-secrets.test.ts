/**
 * `sluice secrets lost --replace`, killed at any moment: it has shown every key in force. `sluice secrets lost` alone
 * lists the shown keys that are in force.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listSecrets } from '@sluice/database/webhooks/encrypted-secrets';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { WAIT } from './fleet-under-test.ts';
import { runProgram, SECRETS } from './program-under-test.ts';

const LOST = { id: 'lost', key: Buffer.alloc(32, 1) };
const KEPT = { id: 'kept', key: Buffer.alloc(32, 2) };

/** The key of a workspace and the key of its webhook, both lost; the first is given up first. */
async function startWorld() {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  await sql`
    update environments set webhook_signing_key = ${createEncryptedText([LOST]).encrypt('the key', secretContext(DEMO.environmentId))}
     where environment_id = ${DEMO.environmentId}`.execute(database);
  await insertTestWebhook(database, DEMO.environmentId);
  const lost = (...words: string[]) =>
    runProgram(SECRETS, ['lost', '--json', ...words], {
      DATABASE_URL: url,
      SEALING_KEYS: `${KEPT.id}:${KEPT.key.toString('base64')}`,
    });
  return {
    database,
    replace: () => lost('--replace', LOST.id),
    listLost: async (): Promise<string[]> => {
      const program = lost();
      expect(await program.ended, program.errors).not.toBeNull();
      return (JSON.parse(program.output || '[]') as { place: string }[]).map(({ place }) => place);
    },
    readOpen: async (): Promise<Record<string, string>> => {
      const encryptedText = createEncryptedText([KEPT]);
      const secrets = await listSecrets(database);
      return Object.fromEntries(
        secrets
          .filter(({ stored }) => stored.startsWith(encryptedText.prefix))
          .map(({ place, environmentId, stored }) => [
            place,
            encryptedText.decrypt(stored, secretContext(environmentId)),
          ]),
      );
    },
  };
}

/** The last key shown for each place. */
const shownIn = (output: string): Record<string, string> =>
  Object.fromEntries(
    output
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { place: string; secret: string })
      .map(({ place, secret }) => [place, secret]),
  );

/** Holds up a statement, or a commit, that gives a webhook another key, while `during` runs. */
async function holdWebhook(
  database: Database,
  trigger: string,
  during: (endHeld: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  await sql`
    create function hold() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(1); return new; end'`.execute(database);
  await sql.raw(`create ${trigger} for each row execute function hold()`).execute(database);
  const held = sql`
    from pg_stat_activity
   where datname = current_database() and application_name = 'sluice-secrets'`;
  await database.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(1)`.execute(transaction);
    await during(async () => {
      await sql`select pg_terminate_backend(pid) ${held}`.execute(database);
    });
  });
  // Postgres goes on with its statement until it has to answer.
  await vi.waitFor(async () => {
    expect((await sql`select ${held}`.execute(database)).rows).toEqual([]);
  }, WAIT);
}

async function untilHeld(database: Database): Promise<void> {
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select from pg_locks where locktype = 'advisory' and not granted
         and database = (select oid from pg_database where datname = current_database())`.execute(
      database,
    );
    expect(rows).toHaveLength(1);
  }, WAIT);
}

const STATEMENT = 'trigger held before update on webhooks';
const COMMIT = 'constraint trigger held after update on webhooks deferrable initially deferred';

test.each([
  ['as it changes the second key', STATEMENT, false, ['environment'], ['webhook']],
  [
    'as it commits the second key, which is undone',
    COMMIT,
    true,
    ['environment', 'webhook'],
    ['webhook'],
  ],
  ['as it commits the second key, which is done', COMMIT, false, ['environment', 'webhook'], []],
] as const)(
  'killed %s: every secret in force was shown, and a shown secret that is not in force stays listed as lost',
  async (_when, trigger, isUndone, shownPlaces, lostPlaces) => {
    const { database, replace, listLost, readOpen } = await startWorld();
    const program = replace();
    await holdWebhook(database, trigger, async (endHeld) => {
      await untilHeld(database);
      program.kill();
      await program.ended;
      if (isUndone) await endHeld();
    });
    const shown = shownIn(program.output);
    expect(Object.keys(shown)).toEqual(shownPlaces);
    expect(await listLost()).toEqual(lostPlaces);
    const inForce = Object.entries(shown).filter(
      ([place]) => !(lostPlaces as readonly string[]).includes(place),
    );
    expect(await readOpen()).toEqual(Object.fromEntries(inForce));
    expect(program.errors).toContain('no longer lists');

    await sql`drop trigger held on webhooks`.execute(database);
    const again = replace();
    expect(await again.ended, again.errors).toBe(lostPlaces.length === 0 ? 2 : 0);
    expect(await readOpen()).toEqual({ ...shown, ...shownIn(again.output) });
    expect(Object.keys(await readOpen())).toEqual(['environment', 'webhook']);
  },
);

test('the program replaces no secret if the reader closes its output', async () => {
  const { replace, readOpen } = await startWorld();
  const program = replace();
  program.child.stdout.destroy();
  expect(await program.ended).toBe(2);
  expect(program.errors).toContain('the reader closed the output');
  expect(await readOpen()).toEqual({});
});
