/** A whole intake on real sockets, Redis and Postgres. It shows the committed operations. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { hasDelivery, listWorkspacesOfDelivery } from '@sluice/database/events/message-deliveries';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listWorkspaceKeys } from '@sluice/database/accounts/workspace-keys';
import type { Operation } from '@sluice/domain/operations/operation';
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { createLogger } from '@sluice/platform/process/logger';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { openProducer } from '@sluice/platform/queue/queue';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { createAccept } from '../../../src/calls/accept-unsubscribe.ts';
import { KeyRing } from '../../../src/auth/authenticate.ts';
import { CutConnections } from '../../../src/connections/cut-connections.ts';
import { Batcher } from '../../../src/commit/batcher.ts';
import { browserPages } from '../../../src/http/browser-pages.ts';
import { authPage, regionPage } from '../../../src/http/credential-pages.ts';
import { TEXT_TYPE } from '../../../src/http/page.ts';
import { RateLimiter, type RatePolicy } from '../../../src/auth/rate-limit.ts';
import { routes } from '../../../src/calls/calls.ts';
import { isReceiveBufferSmall, receiveBuffersBy } from '../../../src/connections/receive-buffer.ts';
import { startServer } from '../../../src/server.ts';
import { CommitSlots } from '../../../src/stream/commit-slots.ts';
import { HeldBytes } from '../../../src/stream/held-bytes.ts';
import { StreamPace } from '../../../src/stream/stream-pace.ts';
import { Turns } from '../../../src/http/turns.ts';
import type { StreamOptions } from '../../../src/stream/stream-exchange.ts';
import { UnauthorizedRecorder, type Refusal } from '../../../src/auth/unauthorized-recorder.ts';

export const PIPELINES_AUTHORIZATION = `Basic ${Buffer.from('write-key:').toString('base64')}`;
export const TRACK_AUTHORIZATION = `Basic ${Buffer.from('site:api-key').toString('base64')}`;

export interface IntakeUnderTest {
  readonly database: Database;
  readonly port: number;
  readonly url: string;
  /** Everything that went through the broker so far, in order. */
  readonly operations: readonly Operation[];
  readonly unauthorized: UnauthorizedRecorder;
  readonly cuts: CutConnections;
  /** The use of the common bounds by calls and streams, and the number of unanswered calls. */
  held(): Readonly<
    Record<
      | 'collectedSizeBytes'
      | 'unreadSizeBytes'
      | 'streamSizeBytes'
      | 'pendingSizeBytes'
      | 'places'
      | 'inFlight',
      number
    >
  >;
  close(): Promise<void>;
}

export async function startIntakeUnderTest(
  ratePolicy?: RatePolicy,
  streams: Partial<StreamOptions> = {},
  connectionCountMax = 10_000,
  /** False: connections have the buffers of the kernel. */
  hasSmallBuffers = true,
): Promise<IntakeUnderTest> {
  const { database, url } = await createTestDatabase();
  const hash = (secret: string) => createHash('sha256').update(secret).digest();
  await sql`insert into accounts (account_id, name) values (1, 'test')`.execute(database);
  await sql`insert into environments (account_id, environment_id, name, webhook_signing_key)
            values (1, 1, 'test', 'signing-key')`.execute(database);
  await sql`insert into api_credentials (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint) values
              (1, 1, 'pipelines', 'p', null, ${hash('write-key')}, '-key'),
              (1, 1, 'track', 't', 'site', ${hash('api-key')}, '-key'),
              (1, 1, 'pipelines', 'demo', null, ${hash(DEMO.writeKey)}, '_key'),
              (1, 1, 'track', 'demo', ${DEMO.siteId}, ${hash(DEMO.apiKey)}, '_key')`.execute(
    database,
  );

  const now = Date.now;
  const newId = createIdGenerator(now);
  const broker = {
    databaseUrl: url,
    redisUrl: testRedisUrl(),
    prefix: uniquePrefix(),
    shardCount: 2,
    logger: createLogger('test', 'silent'),
  };
  const producer = await openProducer(broker);
  const operations: Operation[] = [];
  const consumers = await startConsumers(broker, {
    processCommitBatch(commitBatch) {
      operations.push(...commitBatch.operations.map(unpackOperation));
      return Promise.resolve({ outcome: 'done' });
    },
    wakeLane: () => Promise.resolve({ outcome: 'done' }),
    laneConcurrency: 1,
    now,
  });
  const keys = new KeyRing();
  keys.replace(await listWorkspaceKeys(database));
  const shared = (capacity: number): SharedCapacity =>
    new SharedCapacity({
      capacity,
      sharePercent: 25,
      isAlone: () => keys.workspaceCount <= 1,
      monotonicNow: () => performance.now(),
    });
  const batcher = new Batcher({
    shardCount: broker.shardCount,
    commit: async (commitBatches) => {
      await producer.addCommitBatches(commitBatches);
      return 'broker';
    },
    newId,
    pending: shared(64 * 1_048_576),
    onCommitFailure: () => undefined,
  });
  const unauthorized = new UnauthorizedRecorder();
  const deps = {
    keys,
    batcher,
    recordUnauthorized: (source: string, environmentId?: number, refusal?: Refusal) =>
      unauthorized.record(source, environmentId, refusal),
    retryAfterSeconds: () => 1,
    rateLimiter: ratePolicy && new RateLimiter(ratePolicy, () => performance.now()),
    now,
    newId,
  };
  const cuts = new CutConnections();
  const collected = shared(4 * 1_048_576);
  const unread = shared(4 * 1_048_576);
  const places = shared(4);
  const held = new HeldBytes(() => performance.now());
  const turns = new Turns(() => performance.now());
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    connectionCountMax,
    cuts,
    boundReceiveBuffers: hasSmallBuffers
      ? receiveBuffersBy(process.execPath, 'test', broker.logger)
      : () => Promise.resolve(isReceiveBufferSmall()),
    collected,
    unread,
    routes,
    accept: createAccept(deps, {
      listWorkspacesOfDelivery: (deliveryId) => listWorkspacesOfDelivery(database, deliveryId, 2),
      hasDelivery: (environmentId, deliveryId) => hasDelivery(database, environmentId, deliveryId),
      pause: (durationMs) => sleep(durationMs),
    }),
    demoHosts: ['demo.example'],
    ownerOf: (authorization) => keys.environmentIdOf(authorization) ?? 0,
    streams: {
      ...deps,
      turns,
      monotonicNow: () => performance.now(),
      pause: (durationMs) => sleep(durationMs),
      commitSlots: new CommitSlots(turns),
      waitingSlots: new CommitSlots(turns),
      places,
      held,
      emptyInputPace: new StreamPace(() => performance.now()),
      idleTimeoutMs: 60_000,
      ...streams,
    },
    pages: {
      '/livez': () => ({ status: '200 OK', contentType: TEXT_TYPE, body: 'alive\n' }),
      '/auth': (_, asked) => authPage(deps, asked),
      '/api/v1/accounts/region': (_, asked) => regionPage(deps, asked, 'eu'),
      ...browserPages(deps, false),
    },
  });
  return {
    database,
    port: server.port,
    url: `http://127.0.0.1:${server.port}`,
    operations,
    unauthorized,
    cuts,
    held: () => ({
      collectedSizeBytes: collected.totalSize,
      unreadSizeBytes: unread.totalSize,
      streamSizeBytes: held.totalSizeBytes,
      pendingSizeBytes: batcher.pendingSizeBytes,
      places: places.totalSize,
      inFlight: server.inFlightCount(),
    }),
    async close() {
      server.stopListening();
      await batcher.drain();
      server.close();
      await consumers.close();
      await producer.close();
    },
  };
}
