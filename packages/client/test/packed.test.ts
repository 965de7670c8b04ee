/** The package as it is published: unpacked beside its one dependency in a project of its own, compiled and run there. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
/** npm and the compiler take seconds, and on a busy machine a minute. */
const BUSY_MS = 180_000;

let project: string;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'sluice-test-client-'));
  const modules = join(project, 'node_modules');
  const folder = join(modules, '@sluice/client');
  await mkdir(folder, { recursive: true });
  await run('npm', ['pack', '--pack-destination', project, '--loglevel=error'], { cwd: PACKAGE });
  const [archive = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'));
  await run('tar', ['-xzf', join(project, archive), '-C', folder, '--strip-components=1']);
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers'])
    await cp(join(MODULES, name), join(modules, name), { recursive: true });
  await writeFile(
    join(project, 'package.json'),
    '{"name":"sender","version":"1.0.0","type":"module"}',
  );
}, BUSY_MS);
afterAll(() => rm(project, { recursive: true, force: true }));

test('its types have at most 250 KB', async () => {
  const { size } = await stat(join(project, 'node_modules/@sluice/client/schema.d.ts'));
  expect(size).toBeLessThanOrEqual(250_000);
});

/** A call of each kind, and marked calls that must not compile. `scripts/test/client-calls.test.ts` has every call. */
const TYPED = `
import { createApiClient, createIntakeClient, resultOf, CallFailed } from '@sluice/client';
const api = createApiClient({ url: 'http://a', token: 't' });
const intake = createIntakeClient({ url: 'http://i', writeKey: 'w', isStrict: true });
const track = createIntakeClient({ url: 'http://i', siteId: 's', apiKey: 'k' });
export async function calls() {
  await resultOf(intake.POST('/v1/identify', { body: { userId: 'a' } }));
  await resultOf(intake.POST('/v1/track', { body: { userId: 'a', event: 'seen' } }));
  await resultOf(intake.POST('/v1/group', { body: { groupId: 'g' } }));
  await resultOf(intake.POST('/v1/batch', { body: { batch: [{ type: 'track', userId: 'a', event: 'seen' }] } }));
  await resultOf(track.PUT('/api/v1/customers/{identifier}', { params: { path: { identifier: 'a' } }, body: {} }));
  await resultOf(track.POST('/api/v2/entity', { body: { type: 'person', action: 'delete', identifiers: { id: 'a' } } }));
  const { reporting_webhooks } = await resultOf(api.GET('/v1/reporting_webhooks'));
  const names: string[] = reporting_webhooks.map(({ name }) => name);
  await resultOf(api.POST('/v1/reporting_webhooks', { body: { name: 'n', endpoint: 'https://e', events: ['email_sent'] } }));
  const ofType = { params: { path: { name: 'paid' } } };
  await resultOf(api.PUT('/v1/event_types/{name}', { ...ofType, body: { schema: { type: 'object' } } }));
  await resultOf(api.POST('/v1/event_types/{name}/check', { ...ofType, body: { payload: { total: 100 } } }));
  const ofAccount = { params: { path: { account_id: 1 } } };
  const ofUser = { params: { path: { account_id: 1, user_id: 2 } } };
  const users = '/v1/accounts/{account_id}/users';
  const { user } = await resultOf(api.POST(users, { ...ofAccount, body: { email: 'a@b.example', role: 'member', environment_ids: [] } }));
  const role: 'member' | 'billing_admin' | 'account_admin' = user.role;
  await resultOf(api.PUT('/v1/accounts/{account_id}/users/{user_id}', { ...ofUser, body: { role } }));
  await resultOf(api.DELETE('/v1/accounts/{account_id}/users/{user_id}/sessions', ofUser));
  const provider = { issuer: 'https://login.example', client_id: 'c', email_domains: ['b.example'] };
  await resultOf(api.PUT('/v1/accounts/{account_id}/identity_provider', { ...ofAccount, body: provider }));
  await resultOf(api.GET('/v1/statistics', { params: { query: { metric: 'events' } } }));
  const form = { name: 'n', type: 'event' as const, identifier: 'id' as const, file: new Blob(['a']) };
  await resultOf(api.POST('/v1/imports', { body: form, bodySerializer: () => new FormData() }));
  try {
    // @ts-expect-error no file
    await api.POST('/v1/imports', { body: { name: 'n', type: 'event', identifier: 'id' } });
    // @ts-expect-error no metric
    await api.GET('/v1/statistics', { params: { query: {} } });
    // @ts-expect-error no event
    await resultOf(intake.POST('/v1/track', { body: { userId: 'a' } }));
    // @ts-expect-error a call of the API
    await intake.GET('/v1/reporting_webhooks');
    // @ts-expect-error no such event type
    await api.POST('/v1/reporting_webhooks', { body: { name: 'n', endpoint: 'https://e', events: ['nothing'] } });
  } catch (error) {
    if (error instanceof CallFailed) console.log(error.code, error.requestId, names);
  }
}
`;

test(
  'a call of each kind compiles, and wrong ones do not',
  async () => {
    await writeFile(join(project, 'typed.ts'), TYPED);
    const flags = [
      '--strict',
      '--noEmit',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom',
    ];
    const compiled = run(join(MODULES, '.bin/tsc'), [...flags, 'typed.ts'], { cwd: project });
    await expect(compiled.catch(({ stdout }: { stdout: string }) => stdout)).resolves.toMatchObject(
      {
        stdout: '',
      },
    );
  },
  BUSY_MS,
);

test('a call has its credentials and a key of its own, and a failure has the fields of the answer', async () => {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const isFine = request.method === 'POST';
    response.writeHead(isFine ? 200 : 429, {
      'content-type': isFine ? 'application/json' : 'application/problem+json',
      'retry-after': '7',
    });
    const problem = { code: 'rate_limited', message: 'too many', meta: { request_id: 'r-1' } };
    response.end(JSON.stringify(isFine ? { id: 1 } : problem));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await writeFile(
    join(project, 'program.js'),
    `import { createApiClient, createIntakeClient, resultOf } from '@sluice/client';
     const api = createApiClient({ url: '${url}', token: 'key' });
     const formOf = (fields) => {
       const form = new FormData();
       for (const [name, value] of Object.entries(fields)) form.append(name, value);
       return form;
     };
     await resultOf(api.POST('/v1/reporting_webhooks', { body: {} }));
     await resultOf(api.POST('/v1/reporting_webhooks', { body: {}, headers: { 'Idempotency-Key': 'mine' } }));
     await resultOf(createIntakeClient({ url: '${url}', siteId: 's', apiKey: 'k', isStrict: true }).POST('/api/v2/batch', { body: {} }));
     await resultOf(api.POST('/v1/objects', { body: { object_type_id: '1' } }));
     const replays = '/v1/reporting_webhooks/{webhook_id}/replays';
     const ofWebhook = { params: { path: { webhook_id: 1 } } };
     await resultOf(api.POST(replays, { ...ofWebhook, body: { states: ['abandoned'], dry_run: true } }));
     await resultOf(api.POST(replays, { ...ofWebhook, body: { states: ['abandoned'], dry_run: false } }));
     const file = new Blob(['_svc_name,_svc_customer_id\\n']);
     await resultOf(api.POST('/v1/imports', { body: { name: 'n', type: 'event', identifier: 'id', file }, bodySerializer: formOf }));
     const failure = await resultOf(api.GET('/v1/reporting_webhooks')).catch((error) => error);
     const { name, message, status, code, requestId, retryAfterSeconds } = failure;
     console.log(JSON.stringify({ name, message, status, code, requestId, retryAfterSeconds }));`,
  );
  await writeFile(
    join(project, 'older.js'),
    `import { createApiClient, resultOf } from '@sluice/client';
     const api = createApiClient({ url: '${url}', token: 'key' });
     for (let count = 0; count < 2; count++) await resultOf(api.POST('/v1/reporting_webhooks', { body: {} }));`,
  );
  try {
    const { stdout } = await run(process.execPath, ['program.js'], { cwd: project });
    // As Node 18 is, and nearly as a browser is on a page without HTTPS.
    await run(process.execPath, ['--no-experimental-global-webcrypto', 'older.js'], {
      cwd: project,
    });
    expect(JSON.parse(stdout)).toEqual({
      name: 'CallFailed',
      message: 'too many',
      status: 429,
      code: 'rate_limited',
      requestId: 'r-1',
      retryAfterSeconds: 7,
    });
  } finally {
    server.close();
  }
  const [made, again, sent, search, counted, replayed, uploaded, read, ...ofOlder] = requests.map(
    ({ headers }) => headers,
  );
  expect(made).toMatchObject({ authorization: 'Bearer key' });
  expect(made?.['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
  expect(again).toMatchObject({ 'idempotency-key': 'mine' });
  expect(sent).toMatchObject({
    authorization: `Basic ${btoa('s:k')}`,
    'x-strict-mode': '1',
  });
  expect(sent).not.toHaveProperty('idempotency-key');
  for (const each of [search, counted, read]) expect(each).not.toHaveProperty('idempotency-key');
  for (const each of [replayed, uploaded])
    expect(each).toMatchObject({ 'idempotency-key': expect.any(String) });
  expect(uploaded?.['content-type']).toMatch(/^multipart\/form-data; boundary=/);
  const keys = ofOlder.map((each) => each?.['idempotency-key']);
  expect(new Set(keys).size).toBe(2);
  for (const key of keys) expect(key).toMatch(/^[0-9a-z-]{20,100}$/);
});
