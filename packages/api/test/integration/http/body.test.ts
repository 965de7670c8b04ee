import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

describe('the body', () => {
  const post = (payload: string | Buffer, headers: Record<string, string>) =>
    api.app.inject({
      method: 'POST',
      url: '/v1/reporting_webhooks',
      headers: { authorization: `Bearer ${api.a.key}`, ...headers },
      payload,
    });
  const json = { 'content-type': 'application/json' };

  test('over the limit is 413 and the limit is named', async () => {
    const { message } = expectProblem(
      await post(`"${'x'.repeat(1_000_000)}"`, json),
      413,
      'body_too_large',
    );
    expect(message).toContain('65536 bytes');
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/xml',
    'nonsense',
    'application/jsonx',
  ])('as %s is 415', async (type) => {
    expectProblem(await post('{}', { 'content-type': type }), 415, 'unsupported_media_type');
  });

  test('empty members and identity are no coding', async () => {
    for (const list of ['identity', 'identity,', ', Identity', ','])
      expect((await post('{', { ...json, 'content-encoding': list })).json()).toMatchObject({
        code: 'invalid_json',
      });
  });

  test('compressed is 415', async () => {
    expectProblem(
      await post('{}', { ...json, 'content-encoding': 'gzip' }),
      415,
      'unsupported_media_type',
    );
  });

  test.each([
    ['cut', '{'],
    ['without a value', '{"a":}'],
    ['a word', 'undefined'],
    ['two values', '{} {}'],
    ['60,000 deep and cut', '['.repeat(60_000)],
  ])('that is not JSON (%s) is 400', async (_name, payload) => {
    expectProblem(await post(payload, json), 400, 'invalid_json');
  });

  test('that is not UTF-8 is 400', async () => {
    expectProblem(await post(Buffer.from([0x22, 0xff, 0x22]), json), 400, 'invalid_json');
  });

  test.each([
    ['nothing', ''],
    ['null', 'null'],
    ['a number', '1'],
    ['a text', '"text"'],
    ['a list', '[]'],
    ['a list 30,000 deep', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
  ])('that is %s instead of an object is 400', async (_name, payload) => {
    const { errors } = expectProblem(await post(payload, json), 400, 'invalid_request');
    expect(errors).toMatchObject([{ field: null, message: 'the body must be a JSON object' }]);
  });

  test('may name its character set', async () => {
    expectProblem(
      await post('{}', { 'content-type': 'application/json; charset=utf-8' }),
      400,
      'invalid_request',
    );
  });
});
