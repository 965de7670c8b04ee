/** The request of an attempt, as a shell reads its sample. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { curlOfRequest } from '../../src/deliveries/request-curl.ts';

/** The words that a shell gives to curl. */
const wordsOf = (sample: string): string[] =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${sample}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

test('a shell sends the request as it was sent, without the values that are not shown', () => {
  const body = `{"name":"it's $HOME \`id\` $(id) \\\\ \\n","text":"ü"}`;
  const url = "https://example.com/hook?a=1&b='2'";
  const sample = curlOfRequest({
    method: 'POST',
    url,
    headers: {
      'content-type': 'application/json',
      'x-svc-signature': '9f2c',
      'x-own': '(set by you; not shown)',
    },
    body,
    size_bytes: 1,
  });
  expect(wordsOf(sample)).toEqual([
    ...['-X', 'POST', url],
    ...['-H', 'content-type: application/json', '-H', 'x-svc-signature: 9f2c'],
    ...['--data-raw', body],
  ]);
});
