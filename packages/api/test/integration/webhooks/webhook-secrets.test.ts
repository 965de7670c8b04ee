import { secretContext } from '@sluice/domain/delivery/webhook';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
const DAY_S = 86_400;
const nowS = () => Math.floor(api.clock.nowMs / 1000);

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

async function createWebhook() {
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'a', endpoint: 'https://example.com', events: ['email_sent'] },
  });
  const { id } = made.json<{ id: number }>();
  return { id, url: `/v1/reporting_webhooks/${id}/secrets` };
}

test('a webhook starts with the key of its workspace, of which a hint is shown', async () => {
  const { url } = await createWebhook();
  expect((await api.call('GET', url)).json()).toEqual({
    secrets: [{ role: 'current', hint: ' key', created_at: expect.any(Number), promoted_at: null }],
  });
});

test('a secret is shown by the call that makes it and never again, and is stored encrypted', async () => {
  const { id, url } = await createWebhook();
  const made = (await api.call('POST', url, { body: {} })).json();
  expect(made.secret).toMatch(/^secret-/);
  expect(made.standard_webhooks_secret).toBe(
    `whsec_${Buffer.from(made.secret).toString('base64')}`,
  );
  expect(made.secrets[1]).toEqual({
    role: 'next',
    hint: made.secret.slice(-4),
    created_at: nowS(),
    promoted_at: nowS() + DAY_S,
  });
  expect((await api.call('GET', url)).body).not.toContain(made.secret);
  const { rows } = await sql<{ row: string; key: string }>`
    select webhooks::text as row, next_signing_key as key from webhooks where webhook_id = ${id}`.execute(
    api.database,
  );
  expect(rows[0]?.row).not.toContain(made.secret);
  expect(api.encryptedText.decrypt(rows[0]!.key, secretContext(api.a.environmentId))).toBe(
    made.secret,
  );
});

test('only one rotation is under way at a time; promoting ends it', async () => {
  const { url } = await createWebhook();
  const { secret } = (await api.call('POST', url, { body: {} })).json();
  expectProblem(await api.call('POST', url, { body: {} }), 409, 'conflict');
  const promoted = (await api.call('POST', `${url}/promote`)).json();
  expect(promoted.secrets).toEqual([
    { role: 'current', hint: secret.slice(-4), created_at: nowS(), promoted_at: null },
  ]);
  expectProblem(await api.call('POST', `${url}/promote`), 409, 'conflict');
  expect((await api.call('POST', url, { body: {} })).statusCode).toBe(200);
});

test('taken back, the current one stays and another can be made', async () => {
  const { url } = await createWebhook();
  const before = (await api.call('GET', url)).json();
  await api.call('POST', url, { body: {} });
  expect((await api.call('DELETE', `${url}/next`)).json()).toEqual(before);
  expect((await api.call('DELETE', `${url}/next`)).json()).toEqual(before);
  expect((await api.call('POST', url, { body: {} })).statusCode).toBe(200);
});

test('when the overlap is over the new one is the only one, whether anybody looked or not', async () => {
  const { url } = await createWebhook();
  const { secret } = (await api.call('POST', url, { body: { overlap_seconds: 60 } })).json();
  api.clock.nowMs += 60_000;
  expect((await api.call('GET', url)).json().secrets).toMatchObject([
    { role: 'current', hint: secret.slice(-4) },
  ]);
  expectProblem(await api.call('POST', `${url}/promote`), 409, 'conflict');
  // The next rotation starts from it.
  const again = (await api.call('POST', url, { body: {} })).json();
  expect(again.secrets).toMatchObject([
    { role: 'current', hint: secret.slice(-4) },
    { role: 'next', hint: again.secret.slice(-4) },
  ]);
});

test('without an overlap it replaces the old one at once', async () => {
  const { url } = await createWebhook();
  const made = (await api.call('POST', url, { body: { overlap_seconds: 0 } })).json();
  expect(made.secrets).toMatchObject([{ role: 'current', hint: made.secret.slice(-4) }]);
});

test('a secret that receivers have already is taken as it is', async () => {
  const { url } = await createWebhook();
  const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
  const made = (await api.call('POST', url, { body: { secret } })).json();
  expect(made).toMatchObject({ secret, standard_webhooks_secret: secret });
});

test.each([
  ['secret', { secret: 'short' }],
  ['secret', { secret: 'x'.repeat(257) }],
  ['secret', { secret: `with a line\nbreak${'x'.repeat(24)}` }],
  ['overlap_seconds', { overlap_seconds: -1 }],
  ['overlap_seconds', { overlap_seconds: 1.5 }],
  ['overlap_seconds', { overlap_seconds: 31 * DAY_S }],
])('%s is refused by name: %j', async (field, body) => {
  const { url } = await createWebhook();
  const answer = await api.call('POST', url, { body });
  expectProblem(answer, 400, 'invalid_request');
  expect(answer.json().errors[0].field).toBe(field);
});

test.each(['', 'short', 'x'.repeat(23)])(
  'a secret that is too short is refused with the minimum length: %j',
  async (secret) => {
    const { url } = await createWebhook();
    const answer = await api.call('POST', url, { body: { secret } });
    expect(answer.json().message).toContain('must be at least 24 characters long');
  },
);

test.each([
  ['GET', ''],
  ['POST', ''],
  ['POST', '/promote'],
  ['DELETE', '/next'],
] as const)('%s …/secrets%s of an unknown or deleted webhook is 404', async (method, path) => {
  const { id } = await createWebhook();
  await api.call('DELETE', `/v1/reporting_webhooks/${id}`);
  for (const missing of [id, 1_000_000]) {
    const url = `/v1/reporting_webhooks/${missing}/secrets${path}`;
    const answer = await api.call(
      method,
      url,
      path === '' && method === 'POST' ? { body: {} } : {},
    );
    expectProblem(answer, 404, 'not_found');
  }
});

// Security: the audit log is read by more people than may know a key.
test('each change of a key is in the audit log, and no key is', async () => {
  const { id, url } = await createWebhook();
  await api.call('POST', url, { body: {} });
  await api.call('POST', `${url}/promote`);
  await api.call('DELETE', `${url}/next`);
  const { rows } = await sql<{ changes: string }>`
    select changes::text as changes from audit_logs
     where object_type = 'reporting_webhook' and object_id = ${String(id)} and action = 'updated'
     order by audit_log_id`.execute(api.database);
  expect(rows.map((row) => row.changes.match(/\w*signing_key/g))).toEqual([
    ['next_signing_key'],
    ['signing_key', 'next_signing_key'],
  ]);
  expect(JSON.stringify(rows)).not.toMatch(/sealed:|secret-/);
});
