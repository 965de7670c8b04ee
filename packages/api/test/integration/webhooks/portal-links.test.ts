/** A link to the portal is opened once, within a minute. Its sessions end with it, and its actions are recorded. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkAuditChain } from '@sluice/database/verify/verify-audit-chains';
import { lockEnvironment } from '@sluice/database/accounts/environments';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import type { LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { ofThePage, portalOf } from '../support/portal-world.ts';

let api: ApiUnderTest;
let world: ReturnType<typeof portalOf>;
let webhookId: number;
beforeAll(async () => {
  const consoleDirectory = await mkdtemp(join(tmpdir(), 'sluice-console-'));
  for (const name of ['index.html', 'portal.html'])
    await writeFile(join(consoleDirectory, name), `<!doctype html><title>${name}</title>`);
  api = await startApi({ consoleDirectory });
  world = portalOf(api);
  webhookId = await world.makeWebhook('acme');
});
afterAll(() => api.close());

test('a code opens its link once, of two browsers at a time for one', async () => {
  const { link, code, url } = await world.makeLink({ webhook_ids: [webhookId] });
  expect(new URL(url).hash).toBe(`#c=${code}`);
  expect(Buffer.from(code, 'base64url').length).toBe(32);
  const answers = await Promise.all([world.open(link, code), world.open(link, code)]);
  expect(answers.map((each) => each.statusCode).toSorted((one, other) => one - other)).toEqual([
    204, 401,
  ]);
  expectProblem(await world.open(link, code), 401, 'unauthorized');
});

test('a code is good for a minute, for its own link, and for our own page', async () => {
  const { id, link, code } = await world.makeLink({ webhook_ids: [webhookId] });
  const other = await world.makeLink({ webhook_ids: [webhookId] });
  expectProblem(await world.open(link, other.code), 401, 'unauthorized');
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'https://evil.example' },
    { host: 'sluice.example', origin: 'http://sluice.example' },
  ])
    expectProblem(await world.open(link, code, headers), 403, 'forbidden');
  await world.age(id, 61);
  expectProblem(await world.open(link, code), 401, 'unauthorized');
  expect((await world.open(other.link, other.code)).statusCode).toBe(204);
  // Two seconds before its end, which a slow test may miss.
  await vi.waitFor(async () => {
    const late = await world.makeLink({ webhook_ids: [webhookId] });
    await world.age(late.id, 58);
    expect((await world.open(late.link, late.code)).statusCode).toBe(204);
  }, 20_000);
});

test('neither the code nor the cookie is kept', async () => {
  const { link, code } = await world.makeLink({ webhook_ids: [webhookId] });
  const cookie = String((await world.open(link, code)).headers['set-cookie']);
  expect(cookie).toMatch(
    /^portal-80=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
  );
  const { rows } = await sql<{ kept: string }>`
    select (select string_agg(l::text, ' ') from portal_links l)
           || (select string_agg(l::text, ' ') from audit_logs l) as kept`.execute(api.database);
  expect(rows[0]?.kept).not.toContain(code);
  expect(rows[0]?.kept).not.toContain(/=([\w-]{43});/.exec(cookie)![1]);
});

test('by HTTPS the cookie is for this host alone, and kept apart in each site that shows a frame', async () => {
  const trusted = await startApi({ trustedProxies: ['127.0.0.1'] });
  const there = portalOf(trusted);
  const { link, code } = await there.makeLink({
    webhook_ids: [await there.makeWebhook('acme')],
  });
  const answer = await there.open(link, code, {
    host: 'sluice.example',
    origin: 'https://sluice.example',
    'x-forwarded-proto': 'https',
  });
  expect(String(answer.headers['set-cookie'])).toMatch(
    /^__Host-portal=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=None; Secure; Partitioned$/,
  );
  await trusted.close();
});

test('a session ends with its link: deleted, over, left, or of a closed account', async () => {
  const ends: Record<string, (page: Awaited<ReturnType<typeof world.openPage>>) => unknown> = {
    deleted: ({ linkId }) => api.call('DELETE', `/v1/portal_links/${linkId}`),
    over: ({ linkId }) => world.age(linkId, 301),
    left: (page) => page.call('DELETE', '/portal/session'),
    closed: () =>
      sql`update accounts set status = 'closed' where account_id = ${api.a.accountId}`.execute(
        api.database,
      ),
  };
  for (const [name, end] of Object.entries(ends)) {
    const page = await world.openPage({ webhook_ids: [webhookId], expires_in: 300 });
    const status = async () => (await page.call('GET', '/v1/reporting_webhooks')).statusCode;
    expect([name, await status()]).toEqual([name, 200]);
    await end(page);
    expect([name, await status()]).toEqual([name, 401]);
  }
  await sql`update accounts set status = 'active' where account_id = ${api.a.accountId}`.execute(
    api.database,
  );
});

test('links that are not over are listed, newest first, to their workspace alone, and deleted by it alone', async () => {
  const theirs = await world.makeLink(
    { webhook_ids: [await world.makeWebhook('theirs', api.b)] },
    api.b,
  );
  const made = await world.makeLink({ webhook_ids: [webhookId], capabilities: ['resend', 'view'] });
  const list = async (query = '') =>
    (await api.call('GET', `/v1/portal_links${query}`)).json<{
      portal_links: { id: string }[];
      next: string;
    }>();
  const { portal_links: links } = await list();
  expect(links.find(({ id }) => id === made.id)).toEqual({
    id: made.id,
    for: 'acme/jo',
    webhook_ids: [webhookId],
    capabilities: ['view', 'resend'],
    created_at: expect.any(String),
    expires_at: expect.any(String),
    opened_at: null,
  });
  expect(links.map(({ id }) => id)).toEqual(
    links
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  );
  const first = await list('?limit=1');
  const second = await list(`?limit=1&start=${first.next}`);
  expect([first, second].flatMap((page) => page.portal_links.map(({ id }) => id))).toEqual(
    links.slice(0, 2).map(({ id }) => id),
  );
  expect(links.map(({ id }) => id)).not.toContain(theirs.id);
  expectProblem(await api.call('DELETE', `/v1/portal_links/${theirs.id}`), 404, 'not_found');
  expect((await api.call('DELETE', `/v1/portal_links/${made.id}`)).statusCode).toBe(200);
  expectProblem(await api.call('DELETE', `/v1/portal_links/${made.id}`), 404, 'not_found');
});

test('a wrong field of a link is refused by its name', async () => {
  const theirs = await world.makeWebhook('b', api.b);
  for (const [field, body] of [
    ['for', { for: undefined }],
    ['for', { for: ' ' }],
    ['webhook_ids', { webhook_ids: [] }],
    ['webhook_ids.1', { webhook_ids: [webhookId, theirs] }],
    ['capabilities.0', { capabilities: ['delete'] }],
    ['expires_in', { expires_in: 299 }],
    ['expires_in', { expires_in: 604_801 }],
    ['event_types', { capabilities: ['create'], attribute_filters: null }],
    ['attribute_filters', { capabilities: ['create'], event_types: ['email_sent'] }],
    ['event_types.0', { event_types: ['no_such'] }],
    ['return_url', { return_url: 'javascript:alert(1)' }],
    ['theme.accent', { theme: { accent: 'red' } }],
    ['theme.accent', { theme: { accent: '#ffff00', color_scheme: 'light' } }],
    ['theme.accent', { theme: { accent: '#222222' } }],
    ['theme.logo', { theme: { logo: 'https://elsewhere.example/logo.png' } }],
  ] as const) {
    const answer = await api.call('POST', '/v1/portal_links', {
      body: { for: 'acme', webhook_ids: [webhookId], ...body },
    });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(field);
  }
});

test('only the origins of the workspace may frame the page, and only while the link is valid', async () => {
  const ancestors = async (path: string) => {
    const { headers, body } = await api.app.inject({ url: path });
    expect(body).toContain('portal.html');
    return /frame-ancestors ([^;]+)/.exec(String(headers['content-security-policy']))?.[1];
  };
  const { id, link } = await world.makeLink({ webhook_ids: [webhookId] });
  expect(await ancestors(`/portal/${link}`)).toBe("'none'");
  const set = (origins: readonly string[]) =>
    api.call('PUT', `/v1/accounts/${api.a.accountId}/environments/${api.a.environmentId}`, {
      key: api.a.token,
      body: { environment: { portal_origins: origins } },
    });
  const origins = ['https://app.example.com', 'http://127.0.0.1:3000'];
  expect((await set(origins)).json().environment.portal_origins).toEqual(origins);
  expect(await ancestors(`/portal/${link}`)).toBe(origins.join(' '));
  expect(await ancestors(`/portal/${link}/webhooks/${webhookId}`)).toBe(origins.join(' '));
  // The page of the console is in no frame, and strangers cannot find the accounts with such a page.
  expect(await ancestors(`/portal/${api.a.environmentId}/none`)).toBe("'none'");
  expect(await ancestors(`/portal/${api.b.environmentId}/${id}`)).toBe("'none'");
  await api.call('DELETE', `/v1/portal_links/${id}`);
  expect(await ancestors(`/portal/${link}`)).toBe("'none'");
  for (const origin of [
    'https://app.example.com/',
    'https://app.example.com/a',
    'http://app.example.com',
    'https://*.example.com',
    "https://a.example; script-src 'unsafe-inline'",
    '*',
    'null',
  ])
    expectProblem(await set([origin]), 422, 'validation_failed');
});

test('the audit log shows the portal link and its holder, and its hash chain detects a change', async () => {
  const page = await world.openPage({ webhook_ids: [webhookId], capabilities: ['edit'] });
  await page.call('PUT', `/v1/reporting_webhooks/${webhookId}`, {
    body: { name: 'by a customer' },
  });
  const url = `/v1/accounts/${api.a.accountId}`;
  const headers = { authorization: `Bearer ${api.a.token}` };
  const [latest, opened] = (await api.app.inject({ url: `${url}/audit_logs`, headers })).json()
    .audit_logs;
  expect(latest).toMatchObject({
    object_type: 'reporting_webhook',
    actor: { type: 'portal', name: 'acme/jo', user_id: null, service_account_id: null },
  });
  expect(opened).toMatchObject({ object_type: 'portal_link', changed_attributes: ['opened_at'] });
  const entry = await api.app.inject({ url: `${url}/audit_log/${latest.id}`, headers });
  expect(entry.json().audit_log.context.portal_link_id).toBe(page.linkId);
  const check = async () =>
    (await checkAuditChain(api.database, api.a.accountId, () => {})).findings;
  expect(await check()).toEqual([]);
  await api.database.transaction().execute(async (transaction) => {
    await sql`alter table audit_logs disable trigger audit_logs_append_only`.execute(transaction);
    await sql`update audit_logs set portal_label = 'another' where audit_log_id = ${latest.id}`.execute(
      transaction,
    );
    await sql`alter table audit_logs enable trigger audit_logs_append_only`.execute(transaction);
  });
  expect((await check()).length).toBe(1);
});

test('a page reads its rights and its theme from its session, and a key is refused there', async () => {
  const page = await world.openPage({
    webhook_ids: [webhookId],
    capabilities: ['resend'],
    return_url: 'https://app.example.com/settings',
    theme: { name: 'Acme', accent: '#0b7a83', color_scheme: 'light' },
  });
  expect((await page.call('GET', '/portal/session')).json()).toMatchObject({
    for: 'acme/jo',
    capabilities: ['workspace.read', 'deliveries.retry', 'deliveries.replay'],
    event_types: null,
    return_url: 'https://app.example.com/settings',
    theme: { name: 'Acme', accent: '#0b7a83', on_accent: '#ffffff', color_scheme: 'light' },
  });
  // A key has no link.
  const answer = await api.app.inject({
    url: '/portal/session',
    headers: { ...ofThePage, authorization: `Bearer ${api.a.key}` },
  });
  expectProblem(answer, 401, 'unauthorized');
});

test('a webhook that is asked for while its link is ended is refused as any call of a link that is over', async () => {
  const maker = await world.openPage({
    capabilities: ['create'],
    event_types: ['email_sent'],
    attribute_filters: null,
  });
  const body = { name: 'late', endpoint: 'https://late.example', events: ['email_sent'] };
  let asked: Promise<LightMyRequestResponse> | undefined;
  await api.database.transaction().execute(async (transaction) => {
    // The call has passed the door, and waits for the workspace.
    await lockEnvironment(transaction, api.a.environmentId);
    asked = maker.call('POST', '/v1/reporting_webhooks', { body });
    await untilLockWaiters(api.database, 1);
    await sql`delete from portal_links where portal_link_id = ${maker.linkId}`.execute(transaction);
  });
  expectProblem((await asked)!, 401, 'unauthorized');
});
