import { describe, expect, test } from 'vitest';
import { expectProblem } from '../support/error-shapes.ts';
import { authorization, KEY, openServer } from '../support/fake-dependencies.ts';

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
  ])('%s opens nothing', async (_name, header) => {
    const { app } = await openServer();
    const answer = await app.inject({
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
      const { app } = await openServer();
      const answer = await app.inject({
        url: '/v1/reporting_webhooks',
        headers: { authorization: header },
      });
      expect(answer.json()).toEqual({ reporting_webhooks: [] });
    },
  );

  test('is asked for before the body is read, so that a stranger cannot make us parse', async () => {
    const { app } = await openServer();
    const answer = await app.inject({
      method: 'POST',
      url: '/v1/reporting_webhooks',
      headers: { 'content-type': 'application/json' },
      payload: '{',
    });
    expectProblem(answer, 401, 'unauthorized');
  });

  test('that was revoked stops working within a second', async () => {
    let isRevoked = false;
    let nowMs = 0;
    const { app } = await openServer({
      now: () => nowMs,
      findAppKey: async () =>
        isRevoked ? undefined : { environmentId: 1, credentialId: 1, name: 'test' },
    });
    const statusAt = async (atMs: number) => {
      nowMs = atMs;
      return (await app.inject({ url: '/v1/reporting_webhooks', headers: { authorization } }))
        .statusCode;
    };
    expect(await statusAt(0)).toBe(200);
    isRevoked = true;
    expect(await statusAt(1000)).toBe(401);
  });
});
