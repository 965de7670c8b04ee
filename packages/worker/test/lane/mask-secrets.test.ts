/** Secrets of a webhook in answers that repeat the request. */
import { expect, test } from 'vitest';
import { maskSecrets, secretsIn } from '../../src/lane/mask-secrets.ts';

const HEADERS = { authorization: 'Bearer token-of-ours', 'x-key': 'a "quoted" key' };
const mask = (body: string, headers: Readonly<Record<string, string>> = HEADERS) =>
  maskSecrets({ head: `x-echo: ${body}`, body, status: 200 }, secretsIn(headers));

test.each([
  ['its value', 'got Bearer token-of-ours twice: Bearer token-of-ours', 'got •••• twice: ••••'],
  ['its value without the scheme', 'token=token-of-ours', 'token=••••'],
  ['its value in JSON', JSON.stringify({ key: 'a "quoted" key' }), '{"key":"••••"}'],
  ['none of it', 'thanks', 'thanks'],
])('an answer that repeats %s shows no secret', (_, body, shown) => {
  expect(mask(body)).toEqual({ head: `x-echo: ${shown}`, body: shown, status: 200 });
});

// The kept body ends after 16 KB.
test('an answer that ends within a secret does not show its start', () => {
  const { head, body } = mask('got token-of-our');
  expect(head).toBe('x-echo: got token-of-our');
  expect(body).toBe('got ••••');
  expect(mask('token-of-fice').body).toBe('token-of-fice');
  expect(mask('got token').body).toBe('got token');
});

test('an answer that repeats the password of a Basic header does not show it', () => {
  const basic = (pair: string) => ({
    authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
  });
  expect(mask('user and pass:word', basic('user:pass:word')).body).toBe('user and ••••');
  expect(mask('user and pass', basic('user:pass')).body).toBe('user and pass');
  expect(mask('key sk_live_1', basic('sk_live_1:')).body).toBe('key ••••');
});

test('an answer keeps the directives of a cache that the webhook sends too', () => {
  const headers = { 'cache-control': 'no-cache', pragma: 'no-cache' };
  expect(mask('cache-control: no-cache', headers).body).toBe('cache-control: no-cache');
});

test('a short value, and the value of a header that is no secret, stay in the answer', () => {
  const headers = { 'x-short': 'ok', accept: 'application/json' };
  expect(mask('ok application/json', headers).body).toBe('ok application/json');
});

test('a webhook without headers of its own keeps the answer itself', () => {
  const answer = { head: 'HTTP/1.1 200', body: 'thanks' };
  expect(maskSecrets(answer, secretsIn({}))).toBe(answer);
});
