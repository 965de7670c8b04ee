/**
 * Client certificate, private authority and OAuth2 client of a webhook.
 *
 * The tests cover the stored values, the shown parts, and refusals by name.
 */
import {
  CLIENT_AUTHORITY,
  CLIENT_ONE_CERTIFICATE,
  CLIENT_ONE_ENCRYPTED_KEY,
  CLIENT_ONE_KEY,
  CLIENT_TWO_CERTIFICATE,
  CLIENT_TWO_KEY,
  EXPIRED_CLIENT_CERTIFICATE,
  FUTURE_CLIENT_CERTIFICATE,
  PRIVATE_AUTHORITY,
  WEAK_CERTIFICATE,
  WEAK_KEY,
} from '@sluice/platform/testing/client-certificates';
import { X509Certificate } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { portalOf } from '../support/portal-world.ts';

const PATH = '/v1/reporting_webhooks';
const CONFIGURATION = { name: 'a', endpoint: 'https://example.com/a', events: ['email_sent'] };
const CLIENT_ONE = { certificate: CLIENT_ONE_CERTIFICATE, private_key: CLIENT_ONE_KEY };
const CLIENT_TWO = { certificate: CLIENT_TWO_CERTIFICATE, private_key: CLIENT_TWO_KEY };
const OAUTH2 = {
  token_url: 'https://login.example.com/token',
  client_id: 'sluice',
  client_secret: 'a secret of the client, 7d65',
  scope: 'hooks',
};
const ALL = {
  client_certificate: CLIENT_ONE,
  certificate_authority: `bag attributes\n${PRIVATE_AUTHORITY}${CLIENT_AUTHORITY}`,
  oauth2: OAUTH2,
};
const SECRETS = [
  'a secret of the client',
  ...CLIENT_ONE_KEY.split('\n').slice(1, 3),
  ...CLIENT_TWO_KEY.split('\n').slice(1, 3),
];
const shownOf = (pem: string, subject: string) => ({
  subject,
  fingerprint_sha256: new X509Certificate(pem).fingerprint256,
  expires_at: Date.UTC(2124, 0, 1) / 1_000,
});
const SHOWN = {
  client_certificate: shownOf(CLIENT_ONE_CERTIFICATE, 'CN=client one'),
  certificate_authority: [
    shownOf(PRIVATE_AUTHORITY, 'CN=Sluice test private authority'),
    shownOf(CLIENT_AUTHORITY, 'CN=Sluice test client authority'),
  ],
  oauth2: {
    ...OAUTH2,
    client_secret: '••••7d65',
    client_authentication: 'basic',
    audience: null,
  },
};
const NONE = { client_certificate: null, certificate_authority: null, oauth2: null };
let api: ApiUnderTest;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const post = (options: object) =>
  api.call('POST', PATH, { body: { ...CONFIGURATION, ...options } });
const make = async (options: object) => (await post(options)).json();
const put = (id: number, body: object) => api.call('PUT', `${PATH}/${id}`, { body });
const get = async (id: number) => (await api.call('GET', `${PATH}/${id}`)).json();
async function storedOf(id: number): Promise<string | null> {
  const { rows } = await sql<{ stored: string | null }>`
    select endpoint_credentials as stored from webhooks where environment_id = ${api.a.environmentId} and webhook_id = ${id}`.execute(
    api.database,
  );
  return rows[0]!.stored;
}

test('all of them are kept encrypted, shown by fingerprint and hint, and taken back one by one', async () => {
  const made = await make(ALL);
  expect(made).toMatchObject(SHOWN);
  expect(await get(made.id)).toEqual(made);
  expect(await storedOf(made.id)).toMatch(/^sealed:/);
  for (const field of Object.keys(NONE)) {
    const before = await get(made.id);
    const changed = await put(made.id, { [field]: null });
    expect(changed.json()).toEqual({ ...before, [field]: null });
  }
  expect(await storedOf(made.id)).toBeNull();
  expect(await make({})).toMatchObject(NONE);
});

test('a change that does not name them keeps them, and so does one that names the same', async () => {
  const made = await make(ALL);
  const stored = await storedOf(made.id);
  expect((await put(made.id, { name: 'b' })).json()).toMatchObject(SHOWN);
  expect((await put(made.id, ALL)).json()).toMatchObject(SHOWN);
  expect(await storedOf(made.id)).toBe(stored);
  const changed = await put(made.id, { client_certificate: CLIENT_TWO });
  expect(changed.json()).toMatchObject({
    ...SHOWN,
    client_certificate: shownOf(CLIENT_TWO_CERTIFICATE, 'CN=client two'),
  });
});

// Security: a reader of a webhook, or of its audit log, gets no key and no secret.
test('no answer and no entry of the audit log has a key or a secret', async () => {
  const made = await post(ALL);
  const { id } = made.json<{ id: number }>();
  const answers = [
    made,
    await api.call('GET', `${PATH}/${id}`),
    await put(id, { client_certificate: CLIENT_TWO }),
    await put(id, { oauth2: { ...OAUTH2, client_secret: 'a secret of the client, 8e76' } }),
    await put(id, { oauth2: null }),
    await api.call('DELETE', `${PATH}/${id}`),
  ];
  const { rows } = await sql<{ text: string }>`
    select audit_logs::text as text from audit_logs where account_id = ${api.a.accountId} and object_type = 'reporting_webhook'
       and object_id = ${String(id)} order by audit_log_id`.execute(api.database);
  const shown = [...answers.map(({ body }) => body), ...rows.map(({ text }) => text)].join('\n');
  for (const secret of SECRETS) expect(shown).not.toContain(secret);
  expect(shown).not.toMatch(/sealed:|BEGIN/);
  expect(rows).toHaveLength(5);
  expect(rows[0]?.text).toContain(SHOWN.client_certificate.fingerprint_sha256);
  expect(rows[2]?.text).toContain('••••8e76');
});

test.each([
  ['client_certificate.certificate', { certificate: 'x' }, 'must be PEM'],
  [
    'client_certificate.certificate',
    { certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
    'that can be read',
  ],
  [
    'client_certificate.certificate',
    { certificate: `${CLIENT_ONE_CERTIFICATE}${CLIENT_ONE_KEY}` },
    'must not hold a private key',
  ],
  [
    'client_certificate.certificate',
    { certificate: EXPIRED_CLIENT_CERTIFICATE },
    'must not be expired: it was valid until Feb  1 00:00:00 2020 GMT',
  ],
  [
    'client_certificate.certificate',
    { certificate: `${CLIENT_ONE_CERTIFICATE}${EXPIRED_CLIENT_CERTIFICATE}` },
    'must not be expired (certificate 2)',
  ],
  [
    'client_certificate.certificate',
    { certificate: FUTURE_CLIENT_CERTIFICATE },
    'must be valid already',
  ],
  [
    'client_certificate.certificate',
    { certificate: CLIENT_ONE_CERTIFICATE.repeat(11) },
    'at most 10 certificates',
  ],
  ['client_certificate.certificate', { certificate: 'x'.repeat(20_001) }, 'at most 20000'],
  [
    'client_certificate.certificate',
    { certificate: WEAK_CERTIFICATE, private_key: WEAK_KEY },
    'cannot be used for TLS (ERR_SSL_EE_KEY_TOO_SMALL); send another certificate',
  ],
  ['client_certificate.private_key', { private_key: CLIENT_TWO_KEY }, 'must be the key of'],
  ['client_certificate.private_key', { private_key: 'x' }, 'must be PEM of a private key'],
  [
    'client_certificate.private_key',
    { private_key: CLIENT_ONE_ENCRYPTED_KEY },
    'must not be encrypted with a passphrase',
  ],
  ['client_certificate.private_key', { private_key: undefined }, 'is required'],
])('a client certificate that cannot be used is refused by its field: %s', async (...wrong) => {
  const [field, changes, message] = wrong;
  const made = await make({ client_certificate: CLIENT_ONE });
  for (const refused of [
    await post({ client_certificate: { ...CLIENT_ONE, ...changes } }),
    await put(made.id, { client_certificate: { ...CLIENT_ONE, ...changes } }),
  ]) {
    expectProblem(refused, 400, 'invalid_request');
    expect(refused.json()).toMatchObject({ errors: [{ field }] });
    expect(refused.json().message).toContain(message);
  }
  expect((await get(made.id)).client_certificate).toEqual(SHOWN.client_certificate);
});

test.each([
  ['certificate_authority', { certificate_authority: 'x' }, 'must be PEM'],
  [
    'certificate_authority',
    { certificate_authority: EXPIRED_CLIENT_CERTIFICATE },
    'must not be expired',
  ],
  [
    'certificate_authority',
    { certificate_authority: CLIENT_ONE_CERTIFICATE },
    'must hold a certificate that signed itself',
  ],
  ['oauth2.token_url', { oauth2: { ...OAUTH2, token_url: 'ftp://x' } }, 'http or https'],
  [
    'oauth2.token_url',
    { oauth2: { ...OAUTH2, token_url: 'http://169.254.169.254/token' } },
    'never sent to',
  ],
  ['oauth2.client_id', { oauth2: { ...OAUTH2, client_id: '' } }, 'oauth2.client_id'],
  ['oauth2.client_secret', { oauth2: { ...OAUTH2, client_secret: undefined } }, 'is required'],
  ['oauth2.client_secret', { oauth2: SHOWN.oauth2 }, 'is the hint'],
  [
    'oauth2.client_authentication',
    { oauth2: { ...OAUTH2, client_authentication: 'jwt' } },
    'basic',
  ],
])('%s that cannot be used is refused by name', async (field, options, message) => {
  const refused = await post(options);
  expectProblem(refused, 400, 'invalid_request');
  expect(refused.json()).toMatchObject({ errors: [{ field }] });
  expect(refused.json().message).toContain(message);
});

// Security: an access token is for the server that it was given for.
test('an endpoint on another server needs its OAuth2 client anew; certificates stay', async () => {
  const made = await make(ALL);
  const elsewhere = { endpoint: 'https://elsewhere.example/a' };
  const refused = await put(made.id, elsewhere);
  expectProblem(refused, 400, 'invalid_request');
  expect(refused.json()).toMatchObject({ errors: [{ field: 'oauth2', reason: 'required' }] });
  expect((await get(made.id)).endpoint).toBe(CONFIGURATION.endpoint);
  expect((await put(made.id, { endpoint: 'https://example.com/b' })).statusCode).toBe(200);
  expect((await put(made.id, { ...elsewhere, oauth2: null })).json()).toMatchObject({
    ...SHOWN,
    ...elsewhere,
    oauth2: null,
  });
});

test('a change lets blocked deliveries be tried at once, as one of headers does', async () => {
  const made = await make(ALL);
  const versionOf = async () => {
    const { rows } = await sql<{ version: number }>`
      select endpoint_version as version from webhooks where environment_id = ${api.a.environmentId} and webhook_id = ${made.id}`.execute(
      api.database,
    );
    return rows[0]!.version;
  };
  await put(made.id, ALL);
  expect(await versionOf()).toBe(0);
  await put(made.id, { client_certificate: null });
  expect(await versionOf()).toBe(1);
});

test('endpoints of applications have them too', async () => {
  await api.call('POST', '/v1/applications', { body: { id: 'acme', name: 'Acme' } });
  const path = '/v1/applications/acme/endpoints';
  const endpoint = { name: 'a', endpoint: 'https://acme.example/hooks' };
  const made = await api.call('POST', path, { body: { ...endpoint, ...ALL } });
  expect(made.json()).toMatchObject(SHOWN);
  const refused = await api.call('POST', path, {
    body: { ...endpoint, client_certificate: { ...CLIENT_ONE, private_key: CLIENT_TWO_KEY } },
  });
  expectProblem(refused, 400, 'invalid_request');
});

test('a session of the portal that may edit a webhook may set them, as it may set headers', async () => {
  const world = portalOf(api);
  const webhookId = await world.makeWebhook('customer');
  const page = await world.openPage({ webhook_ids: [webhookId], capabilities: ['edit'] });
  const changed = await page.call('PUT', `${PATH}/${webhookId}`, { body: ALL });
  expect(changed.json()).toMatchObject(SHOWN);
});
