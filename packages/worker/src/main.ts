/** The worker process: envelopes into rows, lanes into deliveries, and the sweep that finds forgotten lanes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createDatabase } from '@sluice/database/connection';
import type { LoggedLane } from '@sluice/database/deliveries';
import { makeEventPartitions } from '@sluice/database/events';
import { findDueWork } from '@sluice/database/due-work';
import { joinInstallation } from '@sluice/database/installation';
import { findLaneBacklog } from '@sluice/database/lane-backlog';
import { NumberStock } from '@sluice/database/numbers';
import { countParkedOperations } from '@sluice/database/parked-operations';
import { countSetAsideRuns } from '@sluice/database/set-aside-runs';
import { longestWaitMs } from '@sluice/domain/delivery-schedule';
import { AppError } from '@sluice/domain/errors';
import { beginProcess } from '@sluice/platform/begin-process';
import { createMetrics } from '@sluice/platform/metrics';
import { createIdGenerator } from '@sluice/platform/new-id';
import { openProducer } from '@sluice/platform/queue';
import { startConsumers } from '@sluice/platform/queue-consumers';
import { repeat } from '@sluice/platform/repeat';
import { openTailChannel } from '@sluice/platform/tail-channel';
import { TailSource } from '@sluice/platform/tail-source';
import { openTracer } from '@sluice/platform/tracing';
import { createSealedText } from '@sluice/platform/sealed-text';
import { registerBacklogMetrics } from './backlog-metrics.ts';
import { forgetOldRecords } from './forget-old-records.ts';
import { createImportSweeps } from './import-sweep.ts';
import { deliverLane, LEASE_MS, SLICE_MS } from './deliver-webhook.ts';
import { startExportTasks } from './export-tasks.ts';
import { startHealthServer } from './health-server.ts';
import { createHttpClient } from './http-client.ts';
import { outcomeOf } from './http-outcome.ts';
import { LaneRoom } from './lane-room.ts';
import { createLaneSlots } from './lane-slots.ts';
import { createLaneStore } from './lane-store.ts';
import { LanesInHand } from './lanes-in-hand.ts';
import { processEnvelope } from './process-envelope.ts';
import { registerProcessMetrics } from './process-metrics.ts';
import { createPurchases } from './purchases.ts';
import { listSealedSamples } from '@sluice/database/sealed-secrets';
import { keepSecrets, secretOpener } from './keep-secrets.ts';
import { PARKED_COUNT_MAX, readReadiness } from './readiness.ts';
import { workerSettings } from './settings.ts';
import { SpareTime } from './spare-time.ts';
import { createWorkerTracing } from './trace-deliveries.ts';
import { startSweeps } from './sweeps.ts';
import { startWebhookTasks } from './webhook-tasks.ts';
import { startUsageTasks } from './usage-tasks.ts';
import { webhookOptions } from './webhook-settings.ts';

/** A request that takes more of our spare time says that its endpoint is far away or does not answer. */
const SLOW_AFTER_MS = 25;
/** Events of a month without a partition go to the default one, which never shrinks. */
const PARTITIONS_AHEAD_MONTHS = 3;
const FORGETTING_INTERVAL_MS = 3_600_000;
const PARTITIONS_INTERVAL_MS = 6 * 3_600_000;

const { settings, logger, lifecycle, fail } = beginProcess(process, 'worker', workerSettings);
const now = Date.now;
const webhooks = webhookOptions(settings);
const probeWaitMsMax = longestWaitMs(webhooks.lanes);
const isDebugging = logger.isLevelEnabled('debug');

const database = createDatabase({
  url: settings.DATABASE_URL,
  poolMax: settings.DATABASE_POOL_MAX,
  applicationName: 'sluice-worker',
  idleInTransactionMsMax: settings.QUEUE_STALLED_AFTER_MS,
  onError: (error) => logger.warn({ error }, 'a database connection broke'),
});
lifecycle.defer('database', () => database.destroy());
await joinInstallation(database, settings.SHARD_COUNT);

const sealedText = createSealedText(settings.SEALING_KEYS);
// Before anything is sent: a key that does not open should end the start, not each delivery.
const openSecret = secretOpener(sealedText);
for (const { environmentId, stored } of await listSealedSamples(database))
  openSecret(environmentId, stored);
await keepSecrets({ database, sealedText, now });

const broker = {
  databaseUrl: settings.DATABASE_URL,
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
const http = createHttpClient(webhooks);
lifecycle.defer('http client', () => http.close());

const tracer = await openTracer(settings, 'sluice-worker', logger);
if (tracer) lifecycle.defer('tracer', () => tracer.close());
const tracing = createWorkerTracing({ tracer, database, logger });
const store = tracing.loading(createLaneStore(database, now, probeWaitMsMax));
const monotonicNow = () => performance.now();
const spare = new SpareTime({
  idleMs: () => performance.eventLoopUtilization().idle,
  monotonicNow,
});
const slots = createLaneSlots({
  slotsMax: settings.WORKER_REQUESTS_MAX,
  slowMax: settings.WORKER_SLOW_REQUESTS_MAX,
  slowAfterMs: SLOW_AFTER_MS,
  monotonicNow,
  spareMs: () => spare.totalMs(),
});
const room = new LaneRoom({
  stillAfterMs: SLOW_AFTER_MS,
  spareMs: () => spare.totalMs(),
  stillMax: settings.WORKER_SLOW_REQUESTS_MAX,
  onFailure: (error) => logger.warn({ error }, 'a lane ended badly; the sweep will find it'),
});
lifecycle.defer('lanes under way', () => room.close());
const numbers = new NumberStock();
const newId = createIdGenerator(now);
let appliedCount = 0;
let operationCount = 0;
let parkedCount = 0;
let deliveredSliceCount = 0;
const attempts = new Map<string, number>();

const purchases = createPurchases({ database, producer, settings, now, logger });
/** What lanes and replays are drained with. */
const draining = {
  policy: webhooks.lanes,
  leases: { timeoutMs: webhooks.timeoutMs, leaseMs: LEASE_MS, sliceMs: SLICE_MS },
  post: tracing.posting(async (request) => {
    const answer = await http.post(request);
    const outcome = outcomeOf(answer);
    attempts.set(outcome, (attempts.get(outcome) ?? 0) + 1);
    return answer;
  }),
  openSecret,
  now,
  monotonicNow,
  spare,
  pause: sleep,
  random: Math.random,
  logger,
};

const inHand = new LanesInHand();
const wakeLogged = async (lane: LoggedLane): Promise<void> => {
  const { environmentId, webhookId } = lane;
  if (!inHand.tell(lane)) await producer.wakeLane({ environmentId, webhookId });
};

const processOne = tracing.processing((envelope, behind) =>
  processEnvelope({ database, numbers, newId, now }, envelope, behind),
);
const consumers = await startConsumers(broker, {
  purchases: purchases.processors,
  laneConcurrency: settings.WORKER_LANE_CONCURRENCY,
  now,
  async processEnvelope(envelope, readBehind) {
    const result = await processOne(envelope, await readBehind());
    if (result.outcome === 'already-applied') return { outcome: 'done' };
    appliedCount += result.envelopes;
    if (isDebugging) logger.debug({ envelopeId: envelope.id, ...result.counts }, 'applied');
    operationCount += result.operations;
    if (result.counts.parked > 0) {
      parkedCount += result.counts.parked;
      logger.error(
        { envelopeId: envelope.id, parked: result.counts.parked },
        'operations could not be applied and are parked: npm run parked',
      );
    }
    // A wake-up that is lost here is made good by the sweep.
    await Promise.all(result.lanes.map(wakeLogged)).catch((error: unknown) => {
      logger.warn({ error }, 'lanes could not be woken; the sweep will find them');
    });
    return { outcome: 'done', behind: result.envelopes - 1 };
  },
  async wakeLane(lane, isPlaceWanted) {
    const delivery = deliverLane(
      {
        ...draining,
        isPlaceWanted,
        store,
        slots,
        inHand,
        wakeLane: (key) => producer.wakeLane(key),
        wakeLaneAt: (key, atMs) => producer.wakeLaneAt(key, atMs, now()),
        tail,
      },
      lane,
    );
    await room.waitFor(delivery);
    deliveredSliceCount++;
    return { outcome: 'done' };
  },
  onHung(queue, jobId) {
    // Whoever starts us again gets fresh connections; the job goes to another worker meanwhile.
    fail(
      new AppError(
        'JOB_HUNG',
        `a try of the job ${jobId} of ${queue} has not ended within ${settings.WORKER_HUNG_AFTER_MS} ms (WORKER_HUNG_AFTER_MS) and cannot be ended from outside: this worker ends, and another one takes the job up. Start it again; where that repeats itself, look at what Postgres waits for: infra/runbooks/events-are-not-processed.md`,
      ),
    );
    // A process that was stopping does not wait for it either.
    process.exit(1);
  },
});
lifecycle.defer('consumers', () => consumers.close());

const renewals = purchases.startRenewals();
lifecycle.defer('renewals', () => renewals.stop());
const stopping = new AbortController();
const forgetting = repeat('forget old records', FORGETTING_INTERVAL_MS, logger, () =>
  forgetOldRecords(
    database,
    {
      issuesKeptDays: settings.INGESTION_ISSUES_KEPT_DAYS,
      importsKeptDays: settings.IMPORTS_KEPT_DAYS,
    },
    now(),
    stopping.signal,
  ),
);
lifecycle.defer('forgetting', () => {
  stopping.abort();
  return forgetting.stop();
});
const webhookSweeps = startWebhookTasks({
  database,
  draining: { ...draining, tracing },
  sealedText,
  wakeLane: (lane) => producer.wakeLane(lane),
  sweepIntervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
  alertAfterMs: settings.WEBHOOK_ALERT_AFTER_MS,
  retentionDays: settings.WEBHOOK_LOG_RETENTION_DAYS,
  newId,
  lifecycle,
});
const partitions = repeat('make partitions', PARTITIONS_INTERVAL_MS, logger, () =>
  makeEventPartitions(database, PARTITIONS_AHEAD_MONTHS),
);
lifecycle.defer('partitions', () => partitions.stop());

const exportSweep = await startExportTasks({ broker, database, now, logger, lifecycle });
await startUsageTasks({
  broker,
  database,
  dayClosedAfterMs: settings.USAGE_DAY_CLOSED_AFTER_MS,
  now,
  logger,
  lifecycle,
});

const sweeps = startSweeps({
  findDueWork: () => findDueWork(database, now(), probeWaitMsMax),
  sweeps: [
    ...webhookSweeps,
    ...purchases.sweeps,
    exportSweep,
    ...createImportSweeps({
      database,
      numbers,
      newId,
      now,
      wakeLane: (lane) => producer.wakeLane(lane),
      tail,
      leaseMs: settings.QUEUE_STALLED_AFTER_MS,
      sizeBytesMax: settings.IMPORT_SIZE_BYTES_MAX,
      unfinishedSizeBytesMax: settings.IMPORT_UNFINISHED_SIZE_BYTES_MAX,
      allowPrivateAddresses: webhooks.allowPrivateAddresses,
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
  return sweeps.stop();
});

const metrics = createMetrics('worker');
registerProcessMetrics({
  metrics,
  counts: () => ({ appliedCount, operationCount, parkedCount, deliveredSliceCount }),
  countParked: () => countParkedOperations(database, PARKED_COUNT_MAX),
  countSetAsidePurchases: () => countSetAsideRuns(database, PARKED_COUNT_MAX),
  report: () => consumers.report(),
  attempts,
  vendorCalls: purchases.vendorCalls,
  slots,
});
registerBacklogMetrics({
  metrics,
  producer,
  findLaneBacklog: () => findLaneBacklog(database, now()),
  now,
});

const health = await startHealthServer({
  host: settings.WORKER_HOST,
  port: settings.WORKER_PORT,
  metrics,
  readiness: () => readReadiness(database, producer, consumers),
});
lifecycle.defer('health server', () => health.close());
logger.info(
  { host: settings.WORKER_HOST, port: health.port, shards: settings.SHARD_COUNT },
  'worker is running',
);
