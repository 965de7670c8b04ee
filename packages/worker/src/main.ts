/**
 * The worker process: commit batches into rows, lanes into deliveries, and the reconcile loop that finds forgotten
 * lanes.
 */
import { measureClock } from '@sluice/database/connection/clock-difference';
import { createDatabase } from '@sluice/database/connection/connection';
import { waitForDatabase } from '@sluice/database/connection/database-wait';
import { findDueWork } from '@sluice/database/maintenance/due-work';
import { joinInstallation, requireReadyCitus } from '@sluice/database/schema/installation';
import { joinBesideKeptSessions } from '@sluice/database/schema/beside-kept-sessions';
import { findLaneBacklog } from '@sluice/database/delivery/lane-backlog';
import { NumberStock } from '@sluice/database/people/numbers';
import { countDeadLetteredOperations } from '@sluice/database/events/dead-lettered-operations';
import { countPurchasesInReview } from '@sluice/database/billing/purchases-in-review';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import { AppError } from '@sluice/domain/values/errors';
import { beginProcess } from '@sluice/platform/process/begin-process';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { DatabaseClock } from '@sluice/platform/process/database-clock';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { openProducer } from '@sluice/platform/queue/queue';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import { NOT_LOOKED_YET } from '@sluice/platform/consumers/queue-watch';
import { openTailChannel } from '@sluice/platform/tail/tail-channel';
import { TailSource } from '@sluice/platform/tail/tail-source';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import {
  adminPlaceOf,
  serveAdmin,
  startAdminServer,
  type Readiness,
} from '@sluice/platform/telemetry/admin-server';
import { watchClock } from '@sluice/platform/telemetry/watch-clock';
import { registerBacklogMetrics } from './process/backlog-metrics.ts';
import { createDeliveries } from './delivery/deliveries.ts';
import { warnOfEndpoints } from './delivery/name-refused-endpoints.ts';
import { resolveBySystem } from '@sluice/platform/outgoing/vetted-connection';
import { moveStagedFlushes } from './events/move-staged-flushes.ts';
import { createCommitBatchProcessor } from './events/commit-batch-processor.ts';
import { createImportReconcileLoops, importBoundsOf } from './imports/reconcile-imports.ts';
import { createDepartedWorkers } from './maintenance/departed-workers.ts';
import { startExportTasks } from './maintenance/export-tasks.ts';
import { startProcessHeartbeat } from './process/process-heartbeat.ts';
import { registerProcessMetrics } from './process/process-metrics.ts';
import { createPurchases } from './purchases/purchases.ts';
import { listWebhookEndpoints } from '@sluice/database/webhooks/webhook-endpoints';
import { contextOf, listEncryptedSamples } from '@sluice/database/webhooks/encrypted-secrets';
import { findOldestUntold } from '@sluice/database/changes/outbox';
import { findOldestWaitingEvent } from '@sluice/database/billing/provider-events';
import { encryptSecrets, webhookSecrets } from './maintenance/encrypt-secrets.ts';
import {
  DEAD_LETTERED_COUNT_MAX,
  readReadiness,
  WAITING_FOR_DATABASE,
} from './process/readiness.ts';
import { workerSettings } from './process/settings.ts';
import { openWorkerTracing } from './tracing/open-worker-tracing.ts';
import { startStatistics } from './process/start-statistics.ts';
import { startReconcileLoops } from './process/reconcile-loops.ts';
import { startTableUpkeep } from './maintenance/table-upkeep.ts';
import { startWebhookTasks } from './maintenance/webhook-tasks.ts';
import { startUsageTasks } from './maintenance/usage-tasks.ts';
import { webhookOptions } from './process/webhook-settings.ts';
import { WorkerClock } from './process/worker-clock.ts';
import { WorkerPresence } from './process/worker-presence.ts';

const { settings, logger, lifecycle, fail, abandon } = await beginProcess(
  process,
  'worker',
  workerSettings,
);
if (settings.REDIS_URL !== undefined)
  void reportRedisAway(settings.REDIS_URL, (message) => logger.warn(message));
const monotonicNow = () => performance.now();
const clocks = { now: Date.now, monotonicNow };
const { now, noticeDifference: onMeasured } = new DatabaseClock(clocks);
const webhooks = webhookOptions(settings);

// Before the steps that wait for Postgres and the broker: a worker that starts while they are away is alive, and not
// ready.
const metrics = createMetrics('worker');
let readiness = (): Promise<Readiness> => Promise.resolve(WAITING_FOR_DATABASE);
const admin = adminPlaceOf(settings.NODE_ENV, settings.WORKER_PORT, settings.WORKER_ADMIN_PORT);
const asked = { host: settings.WORKER_HOST, metrics, readiness: () => readiness() };
const health = await startAdminServer({
  ...asked,
  owner: 'WORKER',
  port: settings.WORKER_PORT,
  showsDetails: admin.place === 'service',
});
lifecycle.defer('health server', () => health.close());
await serveAdmin(admin, { ...asked, owner: 'WORKER_ADMIN', lifecycle, logger });

const databaseUrl = settings.WORKER_DATABASE_URL ?? settings.DATABASE_URL;
const session = { url: databaseUrl, applicationName: 'sluice-worker', confirmsOnDisk: true };
const database = createDatabase({
  ...session,
  poolMax: settings.DATABASE_POOL_MAX,
  idleInTransactionMsMax: settings.QUEUE_STALLED_AFTER_MS,
  onError: (error) => logger.warn({ error }, 'a connection to Postgres broke; it is opened again'),
});
lifecycle.defer('database', () => database.destroy());
const encryptedText = createEncryptedText(settings.SEALING_KEYS);
const measure = () => measureClock(database, clocks);
const clock = new WorkerClock({ ...clocks, measure, onMeasured, fail });
// Before anything is held, and left after all of it is given back.
let consumers: Consumers | undefined;
const presence = new WorkerPresence({
  ...session,
  brokerWorkerIds: () => consumers?.brokerWorkerIds() ?? [],
  hungAfterMs: settings.WORKER_HUNG_AFTER_MS,
  monotonicNow,
  logger,
});
lifecycle.defer('presence', () => presence.stop());
await waitForDatabase({
  ...session,
  lifecycle,
  logger,
  async join() {
    await joinBesideKeptSessions(session, async () => {
      await joinInstallation(database, settings.SHARD_COUNT);
      await requireReadyCitus(database, settings.REDIS_URL);
      await clock.require();
      // Before anything is sent: a key that does not open should end the start, not each delivery.
      for (const sample of await listEncryptedSamples(database))
        encryptedText.decrypt(sample.stored, contextOf(sample));
    });
    await encryptSecrets({ database, encryptedText, now });
    await presence.start();
  },
});

const departedWorkers = createDepartedWorkers({
  database,
  putBackJobsOf: (ids) => (consumers as Consumers).putBackJobsOf(ids),
  monotonicNow,
  logger,
});
await departedWorkers.look();

const broker = {
  databaseUrl,
  applicationName: session.applicationName,
  redisUrl: settings.REDIS_URL,
  prefix: settings.QUEUE_PREFIX,
  shardCount: settings.SHARD_COUNT,
  stalledAfterMs: settings.QUEUE_STALLED_AFTER_MS,
  hungAfterMs: settings.WORKER_HUNG_AFTER_MS,
  logger,
};
const producer = await openProducer(broker);
lifecycle.defer('producer', () => producer.close());
const tailChannel = openTailChannel({ ...broker, prefix: settings.QUEUE_PREFIX });
lifecycle.defer('tail channel', () => tailChannel.close());
const tail = new TailSource(tailChannel, logger);
lifecycle.defer('tail', () => tail.stop());
tail.start();

const tracing = await openWorkerTracing(settings, { database, logger, lifecycle });
const newId = createIdGenerator(now);
const statistics = startStatistics({ database, processId: newId(), now, logger, lifecycle });
const deliveries = createDeliveries({
  database,
  producer,
  webhooks,
  ...webhookSecrets(encryptedText),
  tracing,
  tail,
  countAttempt: statistics.countAttempt.bind(statistics),
  now,
  clock,
  presence,
  logger,
  lifecycle,
});
const numbers = new NumberStock();
const commitBatches = createCommitBatchProcessor({
  database,
  numbers,
  newId,
  tracedProcessing: (process) => tracing.processing(process),
  lanes: deliveries.lanes,
  countOperations: statistics.countOperations.bind(statistics),
  now,
  logger,
});
moveStagedFlushes(producer, newId(), { logger, lifecycle });
const purchases = await createPurchases({ database, producer, settings, now, logger });

const watchReport = () => consumers?.report() ?? { ...NOT_LOOKED_YET, failing: undefined };
readiness = () => readReadiness(database, producer, watchReport());
registerProcessMetrics({
  metrics,
  counts: () => ({ ...commitBatches.counts, deliveredTimeSliceCount: deliveries.timeSliceCount() }),
  countDeadLettered: () => countDeadLetteredOperations(database, DEAD_LETTERED_COUNT_MAX),
  countPurchasesInReview: () => countPurchasesInReview(database, DEAD_LETTERED_COUNT_MAX),
  report: watchReport,
  ...deliveries,
  providerCalls: purchases.providerCalls,
});
const watched = { metrics, logger, lifecycle };
const clockWatch = watchClock({ measure, onMeasured: clock.watch.bind(clock), ...watched });
registerBacklogMetrics({
  metrics,
  producer,
  findLaneBacklog: () => findLaneBacklog(database, now()),
  findOldestProviderEvent: () => findOldestWaitingEvent(database),
  findOldestUntold: () => findOldestUntold(database, now()),
  now,
});

/**
 * Lanes drained at the same time; a lane that only waits for its endpoint is not counted. If a thousand webhooks have
 * deliveries to send, a lane that has to wait for its place is one job and one claim more (`npm run bench -- deliver`).
 */
const LANE_CONCURRENCY = 1_024;
const started = await startConsumers(broker, {
  purchases: purchases.processors,
  laneConcurrency: LANE_CONCURRENCY,
  now: monotonicNow,
  processCommitBatch: commitBatches.processCommitBatch,
  ...deliveries.processors,
  onHung(queue, jobId) {
    // The restarted process gets fresh connections; another worker takes the job meanwhile.
    abandon(
      new AppError(
        'JOB_HUNG',
        `an attempt at the job ${jobId} of ${queue} has not ended within ${settings.WORKER_HUNG_AFTER_MS} ms (WORKER_HUNG_AFTER_MS) and cannot be ended from outside. This worker ends, and another one acquires the job. Start it again. If that happens again, find the reason for the wait in Postgres: docs/operations/runbooks/events-are-not-processed.md`,
      ),
    );
  },
});
lifecycle.defer('consumers', () => started.close());
consumers = started;
presence.tell();

const byTheClock = purchases.startByTheClock();
for (const each of byTheClock) lifecycle.defer('billing by the clock', () => each.stop());
const stopping = new AbortController();
startTableUpkeep({
  database,
  retention: {
    issuesKeptDays: settings.INGESTION_ISSUES_KEPT_DAYS,
    importsKeptDays: settings.IMPORTS_KEPT_DAYS,
  },
  now,
  logger,
  lifecycle,
  stopping,
});
const webhookReconcileLoops = startWebhookTasks({
  database,
  draining: {
    ...deliveries.draining,
    tracedReplay: (store, replay) => tracing.replaying(store, replay),
  },
  encryptedText,
  producer,
  reconcileIntervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
  alertAfterMs: settings.WEBHOOK_ALERT_AFTER_MS,
  retentionDays: settings.WEBHOOK_LOG_RETENTION_DAYS,
  newId,
  lifecycle,
});
const exportReconcileLoop = await startExportTasks({ broker, database, now, logger, lifecycle });
await startUsageTasks({
  broker,
  database,
  dayClosedAfterMs: settings.USAGE_DAY_CLOSED_AFTER_MS,
  now,
  logger,
  lifecycle,
});

const reconcileLoops = startReconcileLoops({
  findDueWork: () => findDueWork(database, now(), longestWaitMs(webhooks.lanes)),
  reconcileLoops: [
    ...webhookReconcileLoops,
    ...purchases.reconcileLoops,
    exportReconcileLoop,
    departedWorkers.reconcileLoop,
    ...createImportReconcileLoops({
      database,
      numbers,
      newId,
      now,
      monotonicNow,
      calls: { pending: started.pending, stage: producer.stage },
      countRows: statistics.countRows.bind(statistics),
      wakeLanes: (lanes) => producer.wakeLanes(lanes),
      tail,
      leaseMs: settings.QUEUE_STALLED_AFTER_MS,
      logger,
      ...importBoundsOf(settings),
      outgoing: webhooks,
      stopping: stopping.signal,
      ...(tracing.importing && { traceImport: tracing.importing }),
      intervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
    }),
  ],
  intervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
  monotonicNow,
  logger,
});
lifecycle.defer('sweeps', () => {
  stopping.abort();
  return reconcileLoops.stop();
});

warnOfEndpoints({
  listEndpoints: (after, countMax) => listWebhookEndpoints(database, after, countMax),
  resolve: resolveBySystem,
  policy: {
    allowPrivate: webhooks.allowPrivateAddresses,
    allowedNetworks: webhooks.allowedNetworks,
  },
  isProduction: settings.NODE_ENV === 'production',
  logger,
  signal: stopping.signal,
});
startProcessHeartbeat({ database, newId, process, clockWatch, watchReport, ...watched });
logger.info({ host: asked.host, port: health.port, shards: broker.shardCount }, 'worker runs');
