/** Webhooks with OAuth2 client credentials, and a real token server. */
import type { Database } from '@sluice/database/connection/connection';
import type { OAuth2Client } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { onTestFinished } from 'vitest';
import { AccessTokens } from '../../../../src/delivery/access-tokens.ts';
import { authorizedPost } from '../../../../src/delivery/authorized-post.ts';
import { createHttpClient, type HttpClientOptions } from '../../../../src/http/http-client.ts';
import { webhookSecrets } from '../../../../src/maintenance/encrypt-secrets.ts';
import { startTokenReceiver, startTokenServer } from '../../../support/token-server.ts';
import { createLaneWorld, type LaneWorld } from '../../support/lane-world.ts';

const encryptedText = createEncryptedText([{ id: 'one', key: Buffer.alloc(32, 1) }]);
const secrets = webhookSecrets(encryptedText);

/** Generous: a busy machine may stand still for seconds while a token is fetched. */
const TIMEOUT_MS = 20_000;

/** A token server, a receiver that refuses unknown tokens, and workers that share a Postgres, until the test ends. */
export async function startTokenWorld(database: Database) {
  const tokens = await startTokenServer();
  const receiver = await startTokenReceiver();
  onTestFinished(() => {
    tokens.close();
    receiver.close();
  });
  let clock = 0;

  /** A worker's way to send: its own memory, its own connections. Its monotonic clock may be ahead by `clock`. */
  function worker(options: Partial<HttpClientOptions> = {}, timeoutMs = TIMEOUT_MS) {
    const http = createHttpClient({ timeoutMs, allowPrivateAddresses: true, ...options });
    onTestFinished(() => http.close());
    const deps = { post: http.post, monotonicNow: () => performance.now() + clock };
    const kept = new AccessTokens({
      ...deps,
      ...secrets,
      database,
      fetchTimeoutMs: timeoutMs / 2,
    });
    return {
      post: authorizedPost({ ...deps, tokens: kept, timeoutMs }),
      openSecret: secrets.openSecret,
    };
  }

  const clientOf = (changes: Partial<OAuth2Client> = {}): OAuth2Client => ({
    token_url: tokens.url,
    client_id: 'sluice',
    client_secret: 'open sesame',
    client_authentication: 'basic',
    ...changes,
  });
  const credentialsOf = (changes: Partial<OAuth2Client> = {}) => ({
    endpointCredentials: JSON.stringify({ oauth2: clientOf(changes) }),
  });
  const worldOf = (changes: Partial<OAuth2Client> = {}): Promise<LaneWorld> =>
    createLaneWorld(database, { endpoint: receiver.url, ...credentialsOf(changes) });

  /** As if so much time had passed for Postgres as well as for workers. */
  async function pass(durationMs: number): Promise<void> {
    clock += durationMs;
    await sql`
      update webhook_tokens set usable_until = usable_until - ${durationMs} * interval '1 millisecond'`.execute(
      database,
    );
  }

  return { tokens, receiver, worker, clientOf, credentialsOf, worldOf, pass };
}

export type TokenWorld = Awaited<ReturnType<typeof startTokenWorld>>;

export async function deliverOne(world: LaneWorld, by: ReturnType<TokenWorld['worker']>) {
  await world.log(1);
  return world.deliverAll(by);
}
