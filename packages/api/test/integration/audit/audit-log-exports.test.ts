/** Exports of the audit log over the API: ordering, polling, fetching. */
import { findAuditLogExport } from '@sluice/database/audit/audit-log-exports';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { insertExport } from '../support/audit-log-world.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  await sql`delete from audit_log_exports`.execute(api.database);
  api.wokenExports.length = 0;
});

const DAY_MS = 86_400_000;
const path = (accountId = api.a.accountId) => `/v1/accounts/${accountId}/audit_logs`;
const order = (body?: unknown, key = api.a.token) =>
  api.call('POST', `${path()}/export`, { key, body });
const poll = (id: string, tenant = api.a) =>
  api.call('GET', `${path(tenant.accountId)}/exports/${id}`, { key: tenant.token });
const fetchLink = (link: string) =>
  api.app.inject({ method: 'GET', url: `/v1/audit_log_exports/${link}` });

describe('an order', () => {
  test('is written down, woken, and answered as pending', async () => {
    const answer = await order({ format: 'ndjson', object_type: 'user', action: 'deleted' });
    expect(answer.statusCode).toBe(200);
    const { export: shown } = answer.json();
    expect(shown).toEqual({
      id: expect.stringMatching(/^exp_/),
      status: 'pending',
      format: 'ndjson',
      progress: 0,
      row_count: null,
      size_bytes: null,
      sha256: null,
      download_url: null,
      start_time: new Date(api.clock.nowMs - 366 * DAY_MS).toISOString(),
      end_time: new Date(api.clock.nowMs).toISOString(),
      requested_by_user_id: null,
      requested_by_service_account_id: expect.any(Number),
      created_at: new Date(api.clock.nowMs).toISOString(),
      completed_at: null,
      expires_at: null,
    });
    const key = { accountId: api.a.accountId, exportId: shown.id };
    expect(api.wokenExports).toEqual([key]);
    expect((await findAuditLogExport(api.database, key))?.filter).toEqual({
      objectType: 'user',
      action: 'deleted',
      startMs: api.clock.nowMs - 366 * DAY_MS,
      endMs: api.clock.nowMs,
    });
  });

  test('is in the audit log with its filters', async () => {
    const { export: shown } = (await order({ ip_addr: '10.' })).json();
    const query = `?object_type=audit_log_export&object_id=${shown.id}`;
    const listed = await api.call('GET', path() + query, { key: api.a.token });
    const [entry] = listed.json().audit_logs;
    expect(entry).toMatchObject({
      action: 'created',
      actor: { type: 'service_account', name: 'test' },
      ip_addr: '127.0.0.1',
    });
    const detail = await api.call('GET', `/v1/accounts/${api.a.accountId}/audit_log/${entry.id}`, {
      key: api.a.token,
    });
    expect(detail.json().audit_log.changes).toContainEqual(
      expect.objectContaining({
        attribute: 'filters',
        to: expect.objectContaining({ ipAddrPrefix: '10.' }),
      }),
    );
  });

  test.each([
    ['no body', undefined],
    ['an empty object', {}],
    ['null', null],
  ])('with %s is one of everything, as CSV', async (_name, body) => {
    const answer = await order(body);
    expect(answer.json()).toMatchObject({ export: { format: 'csv', status: 'pending' } });
  });

  test('is taken while the broker is away: a reconcile loop finds it', async () => {
    api.broker.isAway = true;
    const answer = await order({});
    api.broker.isAway = false;
    expect(answer.statusCode).toBe(200);
  });

  test('of the first years there are has times that can be written', async () => {
    const answer = await order({ end_time: '0001-01-01T00:00:00+23:59' });
    expect(answer.statusCode).toBe(200);
  });

  test('beyond three that are not finished is 409', async () => {
    for (let count = 0; count < 3; count++) expect((await order({})).statusCode).toBe(200);
    expectProblem(await order({}), 409, 'conflict');
  });

  test.each<[Record<string, unknown>, string]>([
    [{ format: 'pdf' }, 'format'],
    [{ format: null }, 'format'],
    [{ user_id: '7' }, 'user_id'],
    [{ user_id: 2_147_483_648 }, 'user_id'],
    [{ service_account_id: 1.5 }, 'service_account_id'],
    [{ start_time: '2026-02-30T00:00:00Z' }, 'start_time'],
    [{ end_time: 1_772_366_400 }, 'end_time'],
    [{ object_id: '1' }, 'object_id'],
    [{ action: 'created' }, 'action'],
    [{ attribute_name: 'name' }, 'attribute_name'],
    [{ object_type: 'user', action: 'removed' }, 'action'],
    [{ start_time: '2026-02-02T00:00:00Z', end_time: '2026-02-01T00:00:00Z' }, 'start_time'],
    [{ start_time: '2024-12-30T23:59:59Z', end_time: '2026-01-01T00:00:00Z' }, 'start_time'],
    [{ start_time: '2020-01-01T00:00:00Z' }, 'start_time'],
    [{ userid: 7 }, 'userid'],
    [{ limit: 5 }, 'limit'],
    [{ ip_addr: 'a\0' }, 'ip_addr'],
  ])('with %j is 422 and names %s', async (body, field) => {
    const problem = expectProblem(await order(body), 422, 'validation_failed');
    expect(problem.errors).toContainEqual(expect.objectContaining({ field }));
    expect(api.wokenExports).toEqual([]);
  });

  test('of exactly 366 days is taken', async () => {
    const body = { start_time: '2024-12-31T00:00:00Z', end_time: '2026-01-01T00:00:00Z' };
    expect((await order(body)).statusCode).toBe(200);
  });

  test('is not for a token that may only read, nor for a member', async () => {
    await insertToken(api.database, api.a.accountId, 'sa_reader', { isReadOnly: true });
    await insertToken(api.database, api.a.accountId, 'sa_member', { role: 'member' });
    expectProblem(await order({}, 'sa_reader'), 403, 'read_only');
    expectProblem(await order({}, 'sa_member'), 403, 'forbidden');
  });
});

describe('a poll', () => {
  test('answers with growing Retry-After times until the export ends', async () => {
    const { export: shown } = (await order({})).json();
    const waits: unknown[] = [];
    for (const ageMs of [0, 8_000, 60_000]) {
      api.clock.nowMs += ageMs;
      waits.push((await poll(shown.id)).headers['retry-after']);
    }
    expect(waits).toEqual(['1', '2', '5']);
    const { export_id: id } = await insertExport(api, api.a);
    expect((await poll(id)).headers['retry-after']).toBeUndefined();
  });

  test('of a completed export has the size, the digest and a link that is new each time', async () => {
    const { export_id: id } = await insertExport(api, api.a, 'twelve bytes');
    const { export: shown } = (await poll(id)).json();
    expect(shown).toMatchObject({
      status: 'completed',
      progress: 1,
      row_count: 1,
      size_bytes: 12,
      sha256: '00'.repeat(32),
      download_url: expect.stringMatching(/^http:\/\/localhost(:80)?\/v1\/audit_log_exports\//),
    });
    api.clock.nowMs += 1_000;
    expect((await poll(id)).json().export.download_url).not.toBe(shown.download_url);
  });

  test('of an unknown, foreign or expired export is 404', async () => {
    const { export_id: id } = await insertExport(api, api.b);
    for (const each of ['exp_none', 'x', '%00', id])
      expectProblem(await poll(each), 404, 'not_found');
    expect((await poll(id, api.b)).statusCode).toBe(200);
    api.clock.nowMs += 7 * DAY_MS;
    expectProblem(await poll(id, api.b), 404, 'not_found');
  });
});

describe('the link', () => {
  test('opens the file without a token, for ten minutes', async () => {
    const { export_id: id, link } = await insertExport(api, api.a, 'id,name\r\n1,Ünï\r\n');
    const answer = await fetchLink(link);
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('id,name\r\n1,Ünï\r\n');
    expect(answer.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="audit-log-${id}.csv"`,
      'content-length': String(answer.rawPayload.length),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    api.clock.nowMs += 599_000;
    expect((await fetchLink(link)).statusCode).toBe(200);
    api.clock.nowMs += 1_000;
    expect(expectProblem(await fetchLink(link), 404, 'not_found').message).toContain('expired');
  });

  test('has an entry of the audit log for each download, by the caller that asked for it', async () => {
    const { export_id: id } = await insertExport(api, api.a);
    const { export: shown } = (await poll(id)).json();
    const downloads = async () => {
      const query = `?object_type=audit_log_export&object_id=${id}&attribute_name=downloaded_at`;
      return (await api.call('GET', path() + query, { key: api.a.token })).json().audit_logs;
    };
    const url = new URL(shown.download_url).pathname;
    await api.app.inject({ method: 'HEAD', url });
    await fetchLink('of another');
    expect(await downloads()).toEqual([]);
    for (let count = 1; count <= 2; count++) {
      const agent = { 'user-agent': 'curl/8' };
      const answer = await api.app.inject({ method: 'GET', url, headers: agent });
      expect(answer.statusCode).toBe(200);
      expect(await downloads()).toHaveLength(count);
    }
    expect((await downloads())[0]).toMatchObject({
      action: 'updated',
      actor: { type: 'service_account', name: 'test' },
      ip_addr: '127.0.0.1',
      user_agent: 'curl/8',
    });
  });

  test('with any changed part is 404', async () => {
    const { link } = await insertExport(api, api.a);
    const { link: other } = await insertExport(api, api.b);
    const [account = '', id = '', holder = '', expiry = '', signature = ''] = link.split('.');
    const [otherAccount = '', otherId = '', , , otherSignature = ''] = other.split('.');
    const flipped = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
    for (const forged of [
      [otherAccount, otherId, holder, expiry, signature],
      [account, otherId, holder, expiry, signature],
      [account, id, 'u1', expiry, signature],
      [account, id, holder, String(Number(expiry) + 1), signature],
      [account, id, holder, expiry, otherSignature],
      [account, id, holder, expiry, flipped],
      [account, id, holder, expiry, ''],
      [account, id, holder, expiry, `${signature}A`],
      [`0${account}`, id, holder, expiry, signature],
      [account, id, holder, expiry],
      [account, id, expiry, signature],
    ]) {
      const problem = expectProblem(await fetchLink(forged.join('.')), 404, 'not_found');
      expect(problem.message).not.toContain('expired');
    }
    expect((await fetchLink(link)).statusCode).toBe(200);
  });

  test('is 404 once the export has expired, even before its file is removed', async () => {
    const { export_id: id, link } = await insertExport(api, api.a);
    await sql`
      update audit_log_exports set expires_at = ${new Date(api.clock.nowMs + 60_000)}
       where export_id = ${id}`.execute(api.database);
    expect((await fetchLink(link)).statusCode).toBe(200);
    api.clock.nowMs += 60_000;
    expectProblem(await fetchLink(link), 404, 'not_found');
  });

  test('is 404 once the file is gone', async () => {
    const { link } = await insertExport(api, api.a);
    await sql`delete from audit_log_exports`.execute(api.database);
    expectProblem(await fetchLink(link), 404, 'not_found');
  });
});
