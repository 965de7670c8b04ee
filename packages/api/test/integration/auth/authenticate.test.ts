import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { KEY_OF_A as KEY, startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

describe('the key', () => {
  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['a scheme alone', 'Bearer'],
    ['an empty token', 'Bearer '],
    ['another scheme', `Basic ${KEY}`],
    ['no scheme', KEY],
    ['a wrong key', `Bearer ${KEY}x`],
    ['two keys', `Bearer ${KEY} ${KEY}`],
    ['a key that is too long', `Bearer ${'x'.repeat(600)}`],
    ['a key that is not ASCII', 'Bearer \u00e9'],
  ])('%s is 401', async (_name, header) => {
    const answer = await api.app.inject({
      url: '/v1/reporting_webhooks',
      headers: header === undefined ? {} : { authorization: header },
    });
    const { message } = expectProblem(answer, 401, 'unauthorized');
    expect(message).toContain('unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  test.each([`Bearer ${KEY}`, `bearer ${KEY}`, `BEARER   ${KEY} `])(
    '%j opens the workspace',
    async (header) => {
      const answer = await api.app.inject({
        url: '/v1/reporting_webhooks',
        headers: { authorization: header },
      });
      expect(answer.json()).toEqual({ reporting_webhooks: [] });
    },
  );

  test('has the time and address of its last use', async () => {
    const headers = { authorization: `Bearer ${KEY}` };
    await api.app.inject({ url: '/v1/workspaces', headers, remoteAddress: '127.0.0.9' });
    await expect
      .poll(
        async () => {
          const { rows } = await sql<{ at: Date; ip: string }>`
            select last_used_at as at, last_used_ip as ip from api_credentials
             where environment_id = ${api.a.environmentId} and kind = 'app'`.execute(api.database);
          return rows.map(({ at, ip }) => ({ atMs: at?.getTime(), ip }));
        },
        { timeout: 20_000 },
      )
      .toEqual([{ atMs: api.clock.nowMs, ip: expect.stringMatching(/^127\.0\.0\.[19]$/) }]);
  });

  test('is asked for before the body is read, so that a stranger cannot make us parse', async () => {
    const answer = await api.app.inject({
      method: 'POST',
      url: '/v1/reporting_webhooks',
      headers: { 'content-type': 'application/json' },
      payload: '{',
    });
    expectProblem(answer, 401, 'unauthorized');
  });

  test('that was revoked stops working within a second', async () => {
    const { environmentId } = api.b;
    const statusAfter = async (ms: number) => {
      api.clock.nowMs += ms;
      const headers = { authorization: `Bearer ${api.b.key}` };
      return (await api.app.inject({ url: '/v1/reporting_webhooks', headers })).statusCode;
    };
    expect(await statusAfter(0)).toBe(200);
    await sql`
      update api_credentials set revoked_at = now()
       where environment_id = ${environmentId} and kind = 'app'`.execute(api.database);
    expect(await statusAfter(1000)).toBe(401);
  });
});
