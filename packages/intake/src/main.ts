/** The intake process: settings, resources in order, the use case, the sockets. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { measureClock } from '@sluice/database/connection/clock-difference';
import { createDatabase } from '@sluice/database/connection/connection';
import { waitForDatabase } from '@sluice/database/connection/database-wait';
import { joinInstallation, requireReadyCitus } from '@sluice/database/schema/installation';
import { joinBesideKeptSessions } from '@sluice/database/schema/beside-kept-sessions';
import { hasDelivery, listWorkspacesOfDelivery } from '@sluice/database/events/message-deliveries';
import {
  listWorkspaceKeys,
  saveKeyUses,
  saveTestedKeys,
  type TestKey,
} from '@sluice/database/accounts/workspace-keys';
import { newcomerPercentOf } from '@sluice/domain/values/fair-share';
import { beginProcess } from '@sluice/platform/process/begin-process';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { openProducer } from '@sluice/platform/queue/queue';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { repeat } from '@sluice/platform/process/repeat';
import { openTailChannel } from '@sluice/platform/tail/tail-channel';
import { TailSource } from '@sluice/platform/tail/tail-source';
import { openTracer } from '@sluice/platform/telemetry/open-tracer';
import { adminPlaceOf, serveAdmin } from '@sluice/platform/telemetry/admin-server';
import { watchClock } from '@sluice/platform/telemetry/watch-clock';
import { createAccept } from './calls/accept-unsubscribe.ts';
import { KeyRing } from './auth/authenticate.ts';
import { openBatcher } from './commit/open-batcher.ts';
import { EventTypeRefresh, readsOf } from './event-types/refresh-event-types.ts';
import { browserPages } from './http/browser-pages.ts';
import { openCommitter } from './commit/open-committer.ts';
import { authPage, regionPage } from './http/credential-pages.ts';
import { TEXT_TYPE } from './http/page.ts';
import { openCuts } from './connections/cut-log.ts';
import { createHealth, readinessPage } from './health.ts';
import { connectionCountWithin } from './connections/open-files.ts';
import { startProcessHeartbeat } from './process-heartbeat.ts';
import { registerProcessMetrics, registerServerMetrics } from './process-metrics.ts';
import { openRateLimiters } from './auth/rate-limit.ts';
import { startKeyRefresh } from './auth/refresh-keys.ts';
import { receiveBuffersBy } from './connections/receive-buffer.ts';
import { ReceiptClock } from './receipt-clock.ts';
import { intakeSettings } from './settings.ts';
import { createRoutes } from './calls/calls.ts';
import { createFastPath } from './calls/fast-path.ts';
import { stopServing } from './stop-serving.ts';
import { CallTracer } from './http/trace-calls.ts';
import { openStreamBounds } from './stream/stream-bounds.ts';
import { Turns } from './http/turns.ts';
import { FastTrackParser } from './groups/fast-track-parser.ts';
import { RefusalRecorder } from './calls/refusal-recorder.ts';
import { startRefusalLog } from './auth/refusal-log.ts';
import { TurnClock } from './turn-clock.ts';
import { UnauthorizedRecorder } from './auth/unauthorized-recorder.ts';

const { settings, logger, lifecycle } = await beginProcess(process, 'intake', intakeSettings);
if (settings.REDIS_URL !== undefined)
  void reportRedisAway(settings.REDIS_URL, (message) => logger.warn(message));
/** Browsers send cookies along; uWebSockets.js refuses heads over 4 KB unless this is set before it is loaded. */
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
const { startServer } = await import('./server.ts');
const monotonicNow = () => performance.now();
const receiptClock = new ReceiptClock({ now: Date.now, monotonicNow });
const now = () => receiptClock.now();
const newId = createIdGenerator(now);

const tracer = await openTracer(settings, 'sluice-intake', logger);
if (tracer) lifecycle.defer('tracer', () => tracer.close());
const callTracer = tracer && new CallTracer(tracer);

/**
 * A few reads of the keys long: within that, a path to Postgres that goes silent is noticed. Intake's statements take
 * milliseconds, so even a very slow Postgres is not taken for one that is away.
 */
const STATEMENT_MS_MIN = 2_000;
const STATEMENT_MS_MAX = 5_000;
const statementMsMax = Math.min(
  STATEMENT_MS_MAX,
  Math.max(STATEMENT_MS_MIN, 5 * settings.INTAKE_KEYS_REFRESH_MS),
);
const databaseUrl = settings.INTAKE_DATABASE_URL ?? settings.DATABASE_URL;
const session = { url: databaseUrl, applicationName: 'sluice-intake' };
const database = createDatabase({
  ...session,
  poolMax: 2,
  statementMsMax,
  onError: (error) => logger.warn({ error }, 'a connection to Postgres broke; it is opened again'),
});
lifecycle.defer('database', () => database.destroy());
const keys = new KeyRing();
const eventTypes = new EventTypeRefresh(readsOf(database));
const keyRefresh = await waitForDatabase({
  ...session,
  lifecycle,
  logger,
  join: () =>
    joinBesideKeptSessions(session, async () => {
      await joinInstallation(database, settings.SHARD_COUNT);
      await requireReadyCitus(database, settings.REDIS_URL);
      await eventTypes.read();
      return startKeyRefresh({
        keys,
        listWorkspaceKeys: () => listWorkspaceKeys(database),
        saveTestedKeys: (tested) => saveTestedKeys(database, tested),
        saveKeyUses: () => keys.uses.save(now(), (uses) => saveKeyUses(database, uses)),
        intervalMs: settings.INTAKE_KEYS_REFRESH_MS,
        logger,
        now: monotonicNow,
      });
    }),
});
lifecycle.defer('key refresh', () => keyRefresh.stop());
eventTypes.start(settings.INTAKE_KEYS_REFRESH_MS, logger, lifecycle);
const sharePercent = settings.WORKSPACE_SHARE_PERCENT;
const isAlone = () => keys.workspaceCount <= 1;
/** A bound of this process that all workspaces share. */
const shared = (capacity: number, newcomerPercent = 0) =>
  new SharedCapacity({ capacity, sharePercent, newcomerPercent, isAlone, monotonicNow });
/** A bound that senders can keep full, so a part of it is for workspaces that hold little. */
const sharedWithNewcomers = (capacity: number) => shared(capacity, newcomerPercentOf(sharePercent));

const producer = await openProducer(
  {
    databaseUrl,
    applicationName: session.applicationName,
    redisUrl: settings.REDIS_URL,
    prefix: settings.QUEUE_PREFIX,
    shardCount: settings.SHARD_COUNT,
    logger,
  },
  settings.INTAKE_COMMIT_DEADLINE_MS,
  {
    replicasMin: settings.REDIS_REPLICAS_MIN,
    graceMs: settings.REDIS_REPLICA_GRACE_MS,
    fillPercentMax: settings.REDIS_FILL_PERCENT_MAX,
    requiresDurability:
      settings.NODE_ENV === 'production' && !settings.INTAKE_ALLOW_UNDURABLE_BROKER,
  },
);
lifecycle.defer('producer', () => producer.close());

const { committer, diskBuffer, lease } = await openCommitter({
  producer,
  directory: settings.INTAKE_SPILL_DIRECTORY,
  name: `${settings.QUEUE_PREFIX}-${new URL(databaseUrl).pathname.slice(1)}`,
  sizeBytesMax: settings.INTAKE_SPILL_SIZE_BYTES_MAX,
  sharePercent,
  isAlone,
  deadlineMs: settings.INTAKE_COMMIT_DEADLINE_MS,
  now,
  monotonicNow,
  logger,
  lifecycle,
});

const batcher = openBatcher({
  producer,
  isAlone,
  lifecycle,
  shardCount: settings.SHARD_COUNT,
  newId,
  pending: shared(settings.INTAKE_PENDING_SIZE_BYTES_MAX),
  onCommitted: () => receiptClock.answered(),
  ...(callTracer && { traceFlush: callTracer.traceFlush.bind(callTracer) }),
  committer,
  diskBuffer,
  monotonicNow,
  turnNow: new TurnClock(monotonicNow).now,
  logger,
});
const unauthorized = new UnauthorizedRecorder();
const refusals = new RefusalRecorder();
const recordRefused = async (): Promise<void> => {
  const issues = [...unauthorized.take(now()), ...refusals.take(now())];
  if (issues.length > 0) batcher.add(issues, 0, () => undefined);
};
const recording = repeat('record refused calls', 1_000, logger, recordRefused);
const refusalLog = startRefusalLog(unauthorized, logger);
lifecycle.defer('log of refused keys', () => refusalLog.stop());
lifecycle.defer('recording of refused calls', async () => {
  await recording.stop();
  await recordRefused();
  await batcher.drain();
});

const metrics = createMetrics('intake');
const measure = () => measureClock(database, { now: Date.now, monotonicNow });
// Before the first call is taken. If it fails, the watch of the clock measures again, and logs the failure.
await receiptClock.measure(measure).catch(() => undefined);
const clockWatch = watchClock({
  measure,
  onMeasured: () => receiptClock.measure(measure),
  metrics,
  logger,
  lifecycle,
});
const tailChannel = openTailChannel({
  databaseUrl,
  redisUrl: settings.REDIS_URL,
  prefix: settings.QUEUE_PREFIX,
  logger,
});
lifecycle.defer('tail channel', () => tailChannel.close());
const tail = new TailSource(tailChannel, logger);
lifecycle.defer('tail', () => tail.stop());
tail.start();

const health = createHealth({ producer, batcher, diskBuffer, lease, committer, monotonicNow });
const credentials = {
  keys,
  recordUnauthorized: unauthorized.record.bind(unauthorized),
  recordRefusal: refusals.record.bind(refusals),
};
const { rateLimiter, publishRateLimiter } = openRateLimiters(settings, monotonicNow);
registerProcessMetrics({
  metrics,
  batcher,
  diskBuffer,
  producer,
  keysAgeSeconds: () => keyRefresh.ageSeconds(),
  rateLimitedCount: () =>
    (rateLimiter?.refusedCount ?? 0) + (publishRateLimiter?.refusedCount ?? 0),
  now,
});
const acceptDependencies = {
  ...credentials,
  saveTestedKey: (key: TestKey) => keyRefresh.saveTestedKey(key),
  eventTypes: eventTypes.cache,
  batcher,
  tail,
  rateLimiter,
  publishRateLimiter,
  retryAfterSeconds: () => committer.retryAfterSeconds(),
  now: receiptClock.turnNow,
  newId,
};
const accept = createAccept(acceptDependencies, {
  listWorkspacesOfDelivery: (deliveryId) => listWorkspacesOfDelivery(database, deliveryId, 2),
  hasDelivery: (environmentId, deliveryId) => hasDelivery(database, environmentId, deliveryId),
  pause: (durationMs) => sleep(durationMs),
});
const admin = adminPlaceOf(settings.NODE_ENV, settings.INTAKE_PORT, settings.INTAKE_ADMIN_PORT);
const turns = new Turns(monotonicNow);
const { cuts } = openCuts(logger, lifecycle);
const server = await startServer({
  host: settings.INTAKE_HOST,
  port: settings.INTAKE_PORT,
  connectionCountMax: connectionCountWithin(settings.INTAKE_CONNECTION_COUNT_MAX, logger),
  cuts,
  boundReceiveBuffers: receiveBuffersBy(process.execPath, settings.NODE_ENV, logger),
  collected: sharedWithNewcomers(settings.INTAKE_PENDING_SIZE_BYTES_MAX),
  unread: sharedWithNewcomers(settings.INTAKE_PENDING_SIZE_BYTES_MAX / 2),
  accept,
  // A trace knows an operation by its identity, and an operation of the fast path has no identity.
  ...(callTracer
    ? {
        acceptTraced: (route, traceparent, requestId) =>
          callTracer.acceptCall(accept, route, traceparent, requestId),
      }
    : { fastPath: createFastPath(acceptDependencies, new FastTrackParser()) }),
  routes: createRoutes(
    Math.min(settings.INTAKE_BATCH_SIZE_BYTES_MAX, settings.INTAKE_PENDING_SIZE_BYTES_MAX),
  ),
  demoHosts: settings.DEMO_HOSTS,
  ownerOf: (authorization) => keys.environmentIdOf(authorization) ?? 0,
  streams: {
    ...acceptDependencies,
    pause: (durationMs) => sleep(durationMs),
    ...openStreamBounds(turns, monotonicNow),
    places: sharedWithNewcomers(settings.INTAKE_STREAM_COUNT_MAX),
    idleTimeoutMs: settings.INTAKE_STREAM_IDLE_TIMEOUT_MS,
    ...(callTracer && {
      trace: (traceparent: string, requestId: string) =>
        callTracer.acceptStream(traceparent, requestId),
    }),
  },
  pages: {
    '/livez': () => ({ status: '200 OK', contentType: TEXT_TYPE, body: 'alive\n' }),
    '/readyz': async () => readinessPage(await health(), admin.place === 'service'),
    ...(admin.place === 'service' && {
      '/metrics': async () => ({
        status: '200 OK',
        contentType: metrics.contentType,
        body: await metrics.render(),
      }),
    }),
    '/auth': (_, asked) => authPage(credentials, asked),
    '/api/v1/accounts/region': (_, asked) => regionPage(credentials, asked, settings.INTAKE_REGION),
    ...browserPages(credentials, settings.INTAKE_IS_HTTPS),
  },
});
registerServerMetrics({ metrics, unauthorized, server, cuts });
lifecycle.defer('server', () =>
  stopServing({
    server,
    // The steps after it get the other half.
    bodiesMsMax: settings.DRAIN_TIMEOUT_MS / 2,
    drain: () => batcher.drain(),
    pause: (durationMs) => sleep(durationMs),
    turn: () => nextTurn(),
    now: monotonicNow,
  }),
);
await serveAdmin(admin, {
  owner: 'INTAKE_ADMIN',
  host: settings.INTAKE_HOST,
  metrics,
  readiness: health,
  lifecycle,
  logger,
});
startProcessHeartbeat({ database, newId, process, clockWatch, diskBuffer, now, logger, lifecycle });
logger.info(
  { host: settings.INTAKE_HOST, port: server.port, shards: settings.SHARD_COUNT },
  'intake is listening',
);
