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

test('a short value, and the value of a header that is no secret, stay in the answer', () => {
  const headers = { 'x-short': 'ok', accept: 'application/json' };
  expect(mask('ok application/json', headers).body).toBe('ok application/json');
});

test('a webhook without headers of its own keeps the answer itself', () => {
  const answer = { head: 'HTTP/1.1 200', body: 'thanks' };
  expect(maskSecrets(answer, secretsIn({}))).toBe(answer);
});
