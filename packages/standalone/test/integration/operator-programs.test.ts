/** Ends of the operator's programs that need no service: by themselves, and by a signal to the first of them. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import {
  insertDeadLetteredOperation,
  countDeadLetteredOperations,
} from '@sluice/database/events/dead-lettered-operations';
import { seedDemoWorkspace, DEMO } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { track } from '@sluice/domain/testing/sample-operations';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { TEST_SEALING_KEYS } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { WAIT } from './fleet-under-test.ts';
import { IDENTIFIERS, PARKED, runProgram, SLUICE, type Program } from './program-under-test.ts';

const LOST_KEY = { id: 'lost', key: Buffer.alloc(32, 1) };

let database: Database;
let settings: Record<string, string>;

beforeAll(async () => {
  const made = await createTestDatabase();
  ({ database } = made);
  await seedDemoWorkspace(database);
  settings = {
    DATABASE_URL: made.url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '4',
  };
});

const run = (file: string, words: readonly string[], changes: Record<string, string> = {}) =>
  runProgram(file, words, { ...settings, ...changes });

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  '%s to `sluice` alone ends the script that it has started, with the exit code that shells use',
  async (signal, exitCode) => {
    await database.transaction().execute(async (transaction) => {
      // The script waits for it, so that it is there to be ended.
      await sql`lock table runs in access exclusive mode`.execute(transaction);
      const program = run(SLUICE, ['purchases', 'list']);
      await vi.waitFor(async () => {
        const { rows } = await sql`
          select from pg_stat_activity
           where datname = current_database() and application_name = 'sluice-purchases'
             and wait_event_type = 'Lock'`.execute(database);
        expect(rows).toHaveLength(1);
      }, WAIT);
      program.child.kill(signal);
      expect(await program.ended).toBe(exitCode);
    });
  },
);

test.each(['release', 'fail'])(
  'purchases %s reports that no such purchase is in manual review',
  async (action) => {
    const program = run(SLUICE, ['purchases', action, 'run_nobody']);
    expect(await program.ended).toBe(2);
    expect(program.errors).toMatch(/run_nobody is in manual review: sluice purchases list/);
  },
);

// `sluice verify | head -1`: 1 would mean a difference.
test('verify whose reader has had enough ends as one that could not look, and without a stack', async () => {
  const program = run(SLUICE, ['verify']);
  program.child.stdout.destroy();
  expect(await program.ended).toBe(2);
  expect(program.errors).toBe('ended early: the reader closed the output\n');
});

test.each([
  [SLUICE, 'verify'],
  [SLUICE, 'purchases list'],
  [SLUICE, 'secrets lost'],
  [PARKED, 'list'],
])('%s %s asks for npm run migrate if the database was not migrated', async (file, words) => {
  const empty = await createTestDatabase();
  await sql`drop schema public cascade`.execute(empty.database);
  await sql`create schema public`.execute(empty.database);
  const program = run(file, words.split(' '), {
    DATABASE_URL: empty.url,
    SEALING_KEYS: TEST_SEALING_KEYS,
  });
  expect(await program.ended).toBe(2);
  expect(program.errors).toMatch(
    /^the schema is behind this version, which also needs \w+, \w+, \w+ and \d+ more; run npm run migrate/,
  );
});

test('migrate names the missing right if its user may make no tables', async () => {
  const empty = await createTestDatabase();
  await sql`drop schema public cascade`.execute(empty.database);
  await sql`create schema public`.execute(empty.database);
  // As Postgres makes it.
  await sql`grant usage on schema public to public`.execute(empty.database);
  const role = `weak_${randomUUID().replaceAll('-', '')}`;
  await sql`create role ${sql.id(role)} login password 'weak'`.execute(empty.database);
  onTestFinished(async () => void (await sql`drop role ${sql.id(role)}`.execute(database)));
  const url = new URL(empty.url);
  url.username = role;
  url.password = 'weak';
  const program = run(SLUICE, ['migrate'], { DATABASE_URL: url.href });
  expect(await program.ended).toBe(2);
  expect(program.errors).toMatch(
    /permission denied .*\); let the user of DATABASE_URL own the database/,
  );
});

test('listen refuses a signature by another secret and an old one, prints a genuine delivery, and ends by SIGTERM', async () => {
  const program = run(SLUICE, ['--json', 'listen', '--port', '0', '--secret', 'the secret']);
  const url = await vi.waitFor(() => {
    const [, found] = /listening on (\S+);/.exec(program.errors) ?? [];
    expect(found, program.errors).toBeDefined();
    return found as string;
  }, WAIT);
  const body = '{"event_id":"E1"}';
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const deliver = async (secret: string, timestamp: number): Promise<number> => {
    const signature = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'x-svc-timestamp': String(timestamp), 'x-svc-signature': signature },
      body,
    });
    return answer.status;
  };
  expect(await deliver('another one', nowSeconds)).toBe(401);
  expect(await deliver('the secret', nowSeconds - 360)).toBe(401);
  expect(await deliver('the secret', nowSeconds)).toBe(200);
  program.child.kill('SIGTERM');
  expect(await program.ended).toBe(0);
  const lines = program.output.trimEnd().split('\n');
  const told = { at: expect.any(String), type: null, duration_ms: null, body: { event_id: 'E1' } };
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { ...told, signature: 'wrong_signature', status: 401 },
    { ...told, signature: 'too_old', status: 401 },
    { ...told, signature: 'genuine', status: 200 },
  ]);
});

test('parked lists the dead letters, queues them again once, and reports their number', async () => {
  const operation = { ...track('id:1', 'bought'), environmentId: DEMO.environmentId };
  const deadLettered = {
    environmentId: DEMO.environmentId,
    parkedId: '01JZZZZZZZZZZZZZZZZZZZZZZZ',
    envelopeId: 'envelope-a',
    operation: JSON.stringify(operation),
    error: 'TypeError: of ours',
  };
  await insertDeadLetteredOperation(database, deadLettered);

  const listed = run(PARKED, ['list']);
  expect(await listed.ended, listed.errors).toBe(0);
  expect(JSON.parse(listed.output)).toEqual(deadLettered);

  const queued = run(PARKED, ['retry']);
  expect(await queued.ended, queued.errors).toBe(0);
  expect(queued.output).toBe('queued again: 1\n');
  expect(await countDeadLetteredOperations(database, 10)).toBe(0);

  const again = run(PARKED, ['retry']);
  expect(await again.ended, again.errors).toBe(0);
  expect(again.output).toBe('queued again: 0\n');

  const wrong = run(PARKED, ['forget']);
  expect(await wrong.ended).toBe(2);
  expect(wrong.errors).toMatch(/^usage: sluice parked list\|retry/);
});

test('identifiers lists the identifiers that calls cannot name any more, with the person to merge or delete', async () => {
  const made = await createTestDatabase();
  await seedDemoWorkspace(made.database);
  const given: readonly [string, string, number | null][] = [
    ['id', 'plain', 1],
    ['id', ' blank', 2],
    ['id', 'line\n', 3],
    ['anonymous_id', 'no-break\u00a0', 4],
    ['email', 'ada@example.com', 1],
    ['email', 'n/a', 5],
    ['email', 'ada@example.com ', null],
  ];
  for (const [kind, value, personId] of given)
    await sql`
      insert into person_identifiers (environment_id, kind, value, person_id)
      values (${DEMO.environmentId}, ${kind}, ${value}, ${personId})`.execute(made.database);

  const listed = run(IDENTIFIERS, [], { DATABASE_URL: made.url });
  expect(await listed.ended, listed.errors).toBe(0);
  const found = listed.output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(found.map(({ kind, value, svc_id }) => [kind, value, svc_id])).toEqual([
    ['anonymous_id', 'no-break\u00a0', 'a3000004'],
    ['email', 'ada@example.com ', null],
    ['email', 'n/a', 'a3000005'],
    ['id', ' blank', 'a3000002'],
    ['id', 'line\n', 'a3000003'],
  ]);
});

test('secrets lost names the secrets that it cannot decrypt, and replaces only secrets of the given key', async () => {
  const made = await createTestDatabase();
  await seedDemoWorkspace(made.database);
  const { rows } = await sql<{ stored: string }>`
    update environments set webhook_signing_key = ${createEncryptedText([LOST_KEY]).encrypt('the key', secretContext(DEMO.environmentId))}
     where environment_id = ${DEMO.environmentId}
    returning webhook_signing_key as stored`.execute(made.database);
  const lost = (...words: string[]): Program =>
    run(SLUICE, words, { DATABASE_URL: made.url, SEALING_KEYS: TEST_SEALING_KEYS });
  const readStored = async () =>
    (
      await sql<{ stored: string }>`
        select webhook_signing_key as stored from environments
         where environment_id = ${DEMO.environmentId}`.execute(made.database)
    ).rows;

  const listed = lost('secrets', 'lost');
  expect(await listed.ended).toBe(1);
  expect(listed.output).toBe('workspace 1  (Demo)  signing key  encrypted with "lost"\n');
  expect(listed.errors).toMatch(/after the others.*is lost.*secrets lost --replace lost\n$/s);
  const wrong = lost('secrets', 'lost', '--replace', 'test');
  expect(await wrong.ended).toBe(2);
  expect(wrong).toMatchObject({ output: '', errors: expect.stringContaining('"test"') });
  expect(await readStored()).toEqual(rows);

  const replaced = lost('--json', 'secrets', 'lost', '--replace', 'lost');
  expect(await replaced.ended, replaced.errors).toBe(0);
  const shown = JSON.parse(replaced.output) as { secret: string };
  expect(shown).toEqual({
    place: 'environment',
    environmentId: DEMO.environmentId,
    webhookId: 0,
    accountId: 0,
    userId: 0,
    name: 'Demo',
    keyId: 'lost',
    change: 'key_replaced',
    secret: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const [after] = await readStored();
  expect(after?.stored).toMatch(/^sealed:test:/);
  expect(after?.stored).not.toContain(shown.secret);
  const over = lost('secrets', 'lost');
  expect(await over.ended, over.errors).toBe(0);
  expect(over.output).toMatch(/^all \d+ secrets can be decrypted with SEALING_KEYS\n$/);
});

test('parked ends with 2 and the reason where the broker is away, and forgets nothing', async () => {
  await insertDeadLetteredOperation(database, {
    environmentId: DEMO.environmentId,
    parkedId: '01JZZZZZZZZZZZZZZZZZZZZZZY',
    envelopeId: 'envelope-b',
    operation: JSON.stringify({ ...track('id:1', 'bought'), environmentId: DEMO.environmentId }),
    error: 'TypeError: of ours',
  });
  const program = run(PARKED, ['retry'], { REDIS_URL: 'redis://127.0.0.1:1' });
  expect(await program.ended, program.errors).toBe(2);
  expect(program.errors).not.toBe('');
  expect(await countDeadLetteredOperations(database, 10)).toBe(1);
});
