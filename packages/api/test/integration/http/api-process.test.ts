/** The real process, as an operator starts, checks and stops it. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SIMULATOR_WEBHOOK_SECRET } from '@sluice/billing-vendor/settings';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  runProgramUnderTest,
  TEST_SEALING_KEYS,
} from '@sluice/platform/testing/service-under-test';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { insertToken } from '../support/inserted-rows.ts';
import { MAIN, startProcess as start } from '../support/process-under-test.ts';

test('it starts, answers, and on SIGTERM ends with 0 and leaves no connection behind', async () => {
  const testDatabase = await createTestDatabase();
  const api = start(testDatabase, { OUTGOING_IP_ADDRESSES: '192.0.2.1, 2001:db8::1' });
  const url = await api.ready();
  let requestCount = 0;
  // If Postgres takes seconds to answer, it listens before it is ready.
  await vi.waitFor(
    async () => {
      const readiness = await fetch(`${url}/readyz`);
      const body = await readiness.json();
      requestCount++;
      expect({ status: readiness.status, body }).toEqual({
        status: 200,
        body: { ready: true, checks: { database: 'answers' } },
      });
    },
    { timeout: 60_000, interval: 100 },
  );
  // Each is counted once its answer is sent to the end.
  for (const [path, status] of [
    ['/v1/workspaces', 401],
    ['/openapi.json', 200],
  ] as const) {
    const answer = await fetch(url + path);
    expect(answer.status).toBe(status);
    await answer.arrayBuffer();
    requestCount++;
  }
  expect(await (await fetch(`${url}/metrics`)).text()).toContain(
    `sluice_api_requests_total{service="api"} ${requestCount}\n`,
  );

  const ended = api.ended();
  api.child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('the API runs while the database is away, and /readyz reports it', async () => {
  const proxy = await startTcpProxyTo((await createTestDatabase()).url);
  onTestFinished(() => proxy.close());
  proxy.cut();
  const url = await start(proxy).ready();
  const readiness = await fetch(`${url}/readyz`);
  expect(readiness.status).toBe(503);
  expect(await readiness.json()).toEqual({ ready: false, checks: { database: 'does not answer' } });
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

test('it is not ready before a database that came back has been checked', async () => {
  const testDatabase = await createTestDatabase();
  const proxy = await startTcpProxyTo(testDatabase.url);
  onTestFinished(() => proxy.close());
  proxy.cut();
  const url = await start({ url: proxy.url }).ready();
  const readiness = async () => (await fetch(`${url}/readyz`)).json();

  await testDatabase.database.transaction().execute(async (transaction) => {
    // The check waits for this: the database answers before it is ended.
    await sql`lock table kysely_migration in access exclusive mode`.execute(transaction);
    proxy.restore();
    await expect
      .poll(readiness, { timeout: 20_000 })
      .toEqual({ ready: false, checks: { database: 'answers, but is not checked yet' } });
  });
  await expect
    .poll(readiness, { timeout: 60_000 })
    .toEqual({ ready: true, checks: { database: 'answers' } });
});

test('settings that cannot be used are all named on one line, and it ends with 1', async () => {
  const ended = await runProgramUnderTest(MAIN, {
    API_PORT: '99999',
    OUTGOING_IP_ADDRESSES: 'here',
  });
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.output)).toMatchObject({
    level: 60,
    code: 'CONFIG_INVALID',
    msg: expect.stringMatching(/DATABASE_URL: .*SEALING_KEYS: .*API_PORT: .*OUTGOING_IP_ADDRESSES/),
  });
});

test.each([
  ['another key', [{ id: 'lost', key: Buffer.alloc(32, 1) }], 'is encrypted with the key "lost"'],
  [
    'another key of that name',
    [{ id: 'test', key: Buffer.alloc(32, 1) }],
    'another key with that id',
  ],
] as const)(
  'if %s encrypted a secret of the installation, the API exits with 1, because a worker could not decrypt its secrets',
  async (_, keys, message) => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    const encrypted = createEncryptedText(keys).encrypt('a key', secretContext(DEMO.environmentId));
    await sql`
      update environments set webhook_signing_key = ${encrypted} where environment_id = ${DEMO.environmentId}`.execute(
      database,
    );
    const ended = await runProgramUnderTest(MAIN, {
      DATABASE_URL: url,
      API_PORT: '0',
      SEALING_KEYS: TEST_SEALING_KEYS,
    });
    expect(ended.code).toBe(1);
    const last = JSON.parse(ended.output.trim().split('\n').at(-1) ?? '') as object;
    expect(last).toMatchObject({ level: 60, code: 'SECRET_UNREADABLE' });
    expect(last).toHaveProperty('msg', expect.stringContaining(message));
  },
);

test('a port that is taken is named with the setting to change on its last line, and it ends with 1', async () => {
  const testDatabase = await createTestDatabase();
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const { code, output } = await runProgramUnderTest(MAIN, {
    DATABASE_URL: testDatabase.url,
    SEALING_KEYS: TEST_SEALING_KEYS,
    LOG_LEVEL: 'fatal',
    API_PORT: String(port),
  });
  holder.close();
  expect(code).toBe(1);
  expect(JSON.parse(output)).toMatchObject({
    level: 60,
    code: 'PORT_TAKEN',
    msg: expect.stringMatching(
      new RegExp(`^another process listens on 127.0.0.1:${port}; .* API_PORT=\\d+$`),
    ),
  });
});

// Security: the default secret is public knowledge.
test.each([
  ['development', 200],
  ['production', 400],
])('in %s an event that the public secret signs is answered %i', async (environment, status) => {
  const testDatabase = await createTestDatabase();
  const url = await start(testDatabase, {
    NODE_ENV: environment,
    API_SECRET: 'a'.repeat(32),
  }).ready();
  const body = JSON.stringify({
    id: 'evt_forged',
    type: 'invoice.paid',
    data: { object: { id: 'in_forged' } },
  });
  const seconds = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', SIMULATOR_WEBHOOK_SECRET)
    .update(`${seconds}.${body}`)
    .digest('hex');
  const answer = await fetch(`${url}/v1/vendor_events`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Stripe-Signature': `t=${seconds},v1=${signature}`,
    },
    body,
  });
  expect(answer.status).toBe(status);
});

test('in production it does not start with a payment provider whose events it would refuse', async () => {
  const { url } = await createTestDatabase();
  const { code, output } = await runProgramUnderTest(MAIN, {
    DATABASE_URL: url,
    API_PORT: '0',
    SEALING_KEYS: TEST_SEALING_KEYS,
    NODE_ENV: 'production',
    API_SECRET: 'a'.repeat(32),
    STRIPE_SECRET_KEY: 'sk_test_key',
  });
  expect(code).toBe(1);
  expect(JSON.parse(output.trim().split('\n').at(-1) ?? '')).toMatchObject({
    code: 'CONFIG_INVALID',
    msg: expect.stringMatching(/^STRIPE_WEBHOOK_SECRET is required /),
  });
});

test('without an SMTP server the API writes mails to files, and the log names their folder', async () => {
  const testDatabase = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'sluice-mail-'));
  const api = start(testDatabase, { MAIL_DIRECTORY: join(directory, 'mail') });
  const url = await api.ready();
  const post = (path: string, body: object) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  expect((await post('/v1/account_signup', { email: 'ada@example.com' })).status).toBe(200);
  const files = async () => {
    const names = await readdir(join(directory, 'mail')).catch(() => []);
    return names.filter((name) => name.endsWith('.eml'));
  };
  await expect.poll(async () => (await files()).length, { timeout: 60_000 }).toBe(1);
  const [name = ''] = await files();
  const mail = await readFile(join(directory, 'mail', name), 'utf8');
  expect(mail).toMatch(/^To: ada@example\.com$/m);
  const code = /code is (\d{6})/.exec(mail)?.[1];
  const answer = await post('/v1/account_signup/code', {
    email: 'ada@example.com',
    code,
    company_name: 'Acme',
    first_name: 'Ada',
    last_name: 'L',
    data_center: 'us',
  });
  expect(answer.status).toBe(200);
  const { account_id: id, token } = (await answer.json()) as { account_id: number; token: string };
  const read = await fetch(`${url}/v1/accounts/${id}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(read.status).toBe(200);
  expect(api.lines.map(({ mail: where }) => where)).toContain(
    `into the folder ${join(directory, 'mail')}`,
  );
  await rm(directory, { recursive: true });
});

test('a call with a statement over the time limit gets 503 with the reason and frees its connection', async () => {
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const { rows } = await sql<{ id: number }>`
    insert into accounts (name) values ('A') returning account_id::int as id`.execute(database);
  const accountId = rows[0]!.id;
  await insertToken(database, accountId, 'sa_live_waits');
  const api = start(testDatabase, { API_STATEMENT_MS_MAX: '10000', DATABASE_POOL_MAX: '2' });
  const url = await api.ready();
  const rename = async (name: string) => {
    const answer = await fetch(`${url}/v1/accounts/${accountId}`, {
      method: 'PUT',
      headers: { authorization: 'Bearer sa_live_waits', 'content-type': 'application/json' },
      body: JSON.stringify({ account: { name } }),
    });
    const { detail } = (await answer.json()) as { detail?: string };
    return [answer.status, answer.headers.get('retry-after'), detail];
  };

  await database.transaction().execute(async (transaction) => {
    await sql`select from accounts where account_id = ${accountId} for update`.execute(transaction);
    const refused = [503, '30', expect.stringContaining('took longer than a call may take')];
    expect(await Promise.all([rename('B'), rename('C')])).toEqual([refused, refused]);
  });
  expect(await rename('D')).toEqual([200, null, undefined]);
});

test('if the API hangs, the locks of its transaction are released, and the API works again afterwards', async () => {
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const { rows } = await sql<{ id: number }>`
    insert into accounts (name) values ('A') returning account_id::int as id`.execute(database);
  const accountId = rows[0]!.id;
  await insertToken(database, accountId, 'sa_live_hangs');
  // Longer than a slow machine lets the API pause within a transaction.
  const api = start(testDatabase, { QUEUE_STALLED_AFTER_MS: '8000' });
  const url = await api.ready();
  const rename = (name: string) =>
    fetch(`${url}/v1/accounts/${accountId}`, {
      method: 'PUT',
      headers: { authorization: 'Bearer sa_live_hangs', 'content-type': 'application/json' },
      body: JSON.stringify({ account: { name } }),
    }).then(
      ({ status }) => status,
      () => 'broken off',
    );
  expect(await rename('B')).toBe(200);

  // It has the account's row and waits for its audit log when it stops.
  let hung: Promise<unknown> | undefined;
  await database.transaction().execute(async (transaction) => {
    await sql`
      select from audit_chains where account_id = ${accountId} for update`.execute(transaction);
    hung = rename('C');
    const waiting = async () =>
      (
        await sql`
          select from pg_stat_activity
           where application_name = 'sluice-api' and datname = current_database()
             and wait_event_type = 'Lock'`.execute(database)
      ).rows.length;
    await expect.poll(waiting, { timeout: 30_000 }).toBe(1);
    api.child.kill('SIGSTOP');
  });
  await database.transaction().execute(async (transaction) => {
    await sql`set local lock_timeout = '30s'`.execute(transaction);
    await sql`
      update accounts set website = 'https://a.example' where account_id = ${accountId}`.execute(
      transaction,
    );
  });

  api.child.kill('SIGCONT');
  expect(await hung).toBe(503);
  expect(await rename('D')).toBe(200);
});
