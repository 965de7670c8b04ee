/** Lifetimes of tokens, in the forms that token servers write them. */
import type { OAuth2Client } from '@sluice/domain/delivery/webhook';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchToken } from '../../src/delivery/fetch-token.ts';
import { createHttpClient } from '../../src/http/http-client.ts';
import { startTokenServer, type TokenServer } from '../support/token-server.ts';

const http = createHttpClient({ timeoutMs: 5_000, allowPrivateAddresses: true });
let server: TokenServer;

beforeAll(async () => {
  server = await startTokenServer();
});
afterAll(() => {
  http.close();
  server.close();
});

async function fetched(expiresIn: string) {
  server.refusal = { status: 200, body: `{"access_token":"a","expires_in":${expiresIn}}` };
  const client: OAuth2Client = {
    token_url: server.url,
    client_id: 'a',
    client_secret: 'b',
    client_authentication: 'basic',
  };
  return fetchToken(http.post, client, undefined, 5_000);
}

test.each([
  ['60', 60_000],
  ['"60"', 60_000],
  ['-1', 0],
  ['1e300', 86_400_000],
  // As without a lifetime: with 0 each attempt would fetch a token.
  ['null', 300_000],
])('%s is read', async (expiresIn, lifetimeMs) => {
  expect(await fetched(expiresIn)).toEqual({ outcome: 'token', token: 'a', lifetimeMs });
});

test.each(['""', '" "', '[]', '[60]', 'true', '{}', '"soon"'])(
  '%s is no number',
  async (expiresIn) => {
    const message = 'the expires_in of the token URL is not a number';
    expect(await fetched(expiresIn)).toEqual({ outcome: 'none', message });
  },
);
