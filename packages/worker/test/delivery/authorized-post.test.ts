/** Requests with an access token, and their kept answers. */
import { expect, test } from 'vitest';
import { authorizedPost } from '../../src/delivery/authorized-post.ts';
import type { TokenSource } from '../../src/lane/endpoint-access.ts';

test('an endpoint that repeats its access token in the answer does not show it to readers of deliveries', async () => {
  const post = authorizedPost({
    post: async ({ headers }) => ({
      outcome: 'response',
      status: 200,
      head: `HTTP/1.1 200\nx-echo: ${headers['authorization']}`,
      body: JSON.stringify(headers),
      durationMs: 1,
    }),
    tokens: {
      get: async () => ({ outcome: 'token', value: 'token-of-ours', number: 1, isFresh: true }),
    },
    timeoutMs: 1_000,
    monotonicNow: () => 0,
  });
  const tokenSource = {} as TokenSource;
  const request = { endpoint: 'http://receiver.test/', headers: {}, body: '{}', tokenSource };
  expect(await post(request)).toMatchObject({
    head: 'HTTP/1.1 200\nx-echo: Bearer ••••',
    body: '{"authorization":"Bearer ••••"}',
  });
});
