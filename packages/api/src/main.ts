/** The API process: settings, resources in order, the server. */
import { randomBytes } from 'node:crypto';
import { countProviderCalls } from '@sluice/billing-vendor/count-provider-calls';
import { openPaymentProvider } from '@sluice/billing-vendor/open-payment-provider';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { measureClock } from '@sluice/database/connection/clock-difference';
import { createDatabase } from '@sluice/database/connection/connection';
import { isDatabaseAnswering } from '@sluice/database/connection/database-away';
import { waitForDatabase } from '@sluice/database/connection/database-wait';
import { joinBesideKeptSessions } from '@sluice/database/schema/beside-kept-sessions';
import { heartbeatOf } from '@sluice/database/maintenance/process-heartbeats';
import { AppError } from '@sluice/domain/values/errors';
import { requireReadyCitus } from '@sluice/database/schema/installation';
import { checkSchema } from '@sluice/database/schema/schema-version';
import { contextOf, listEncryptedSamples } from '@sluice/database/webhooks/encrypted-secrets';
import { beginProcess } from '@sluice/platform/process/begin-process';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { DatabaseClock } from '@sluice/platform/process/database-clock';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { openProducer } from '@sluice/platform/queue/queue';
import { repeat } from '@sluice/platform/process/repeat';
import { openTracer } from '@sluice/platform/telemetry/open-tracer';
import { adminPlaceOf, serveAdmin } from '@sluice/platform/telemetry/admin-server';
import { identityOfProcess, startHeartbeat } from '@sluice/platform/telemetry/heartbeat';
import { watchClock } from '@sluice/platform/telemetry/watch-clock';
import { clearOldRows } from './outbox/clear-old-rows.ts';
import { keepRelaying } from './outbox/keep-relaying.ts';
import { createMailer } from './outbox/mailer.ts';
import { createRelay } from './outbox/outbox-relay.ts';
import { openTailChannel } from '@sluice/platform/tail/tail-channel';
import { EXPORT_TASKS, openTaskQueue } from '@sluice/platform/consumers/queue-tasks';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { buildServer, listen } from './server.ts';
import { openReplicaReads } from './serving/open-replica-reads.ts';
import { ServerStop } from './serving/server-stop.ts';
import { apiSettings } from './settings.ts';
import { TailHub } from './events/tail-hub.ts';
import { TailPlaces } from './events/tail-places.ts';
import { RequestTracer } from './serving/trace-requests.ts';
import { admissionOf } from './accounts/signup-admission.ts';
import { keepCheckingDomains } from './identity/check-domains.ts';
import { openIdentityProviders } from './identity/open-identity-providers.ts';
import { createFleetBroker } from './fleet/fleet-broker.ts';
import { REFUSED_PER_MINUTE_MAX, RefusedCredentials } from './auth/refused-credentials.ts';
import { providerEventSecretOf } from './billing/provider-event-secret.ts';

const CLEARED_INTERVAL_MS = 60_000;
const READINESS_DEADLINE_MS = 2_000;
/** In hex: as long as the keys that this kind of service is known for. */
const SECRET_SIZE_BYTES = 32;

const { settings, logger, lifecycle, fail } = await beginProcess(process, 'api', apiSettings);
if (settings.REDIS_URL !== undefined)
  void reportRedisAway(settings.REDIS_URL, (message) => logger.warn(message));
const clocks = { now: Date.now, monotonicNow: () => performance.now() };
const clock = new DatabaseClock(clocks);
const { now } = clock;
const secret = settings.API_SECRET ?? temporarySecret();
const signupAdmission = admissionOf(settings);
const providerEventSecret = providerEventSecretOf(settings);

const tracer = await openTracer(settings, 'sluice-api', logger);
if (tracer) lifecycle.defer('tracer', () => tracer.close());
const requestTracer = tracer && new RequestTracer(tracer);

const databaseUrl = settings.API_DATABASE_URL ?? settings.DATABASE_URL;
const session = { url: databaseUrl, applicationName: 'sluice-api' };
const database = createDatabase({
  ...session,
  poolMax: settings.DATABASE_POOL_MAX,
  statementMsMax: settings.API_STATEMENT_MS_MAX,
  idleInTransactionMsMax: settings.QUEUE_STALLED_AFTER_MS,
  confirmsOnDisk: true,
  onError: (error) => logger.warn({ error }, 'a connection to Postgres broke; it is opened again'),
});
lifecycle.defer('database', () => database.destroy());
const encryptedText = createEncryptedText(settings.SEALING_KEYS);
// Postgres may be away at a start: this process listens meanwhile, and is not ready until Postgres was there and checked.
let isDatabaseChecked = false;
const databaseAway = Promise.withResolvers<void>();
// A failed check ends the process.
const databaseChecked = new Promise<void>((resolve) => {
  const checked = waitForDatabase({
    ...session,
    lifecycle,
    logger,
    onAway: databaseAway.resolve,
    join: () =>
      joinBesideKeptSessions(session, async () => {
        await checkSchema(database);
        await requireReadyCitus(database, settings.REDIS_URL);
        // Before the first call is answered, and measured again and again below.
        clock.noticeDifference(await measureClock(database, clocks));
        // A process with another key would encrypt values that no worker could open, and no worker would start.
        for (const sample of await listEncryptedSamples(database))
          encryptedText.decrypt(sample.stored, contextOf(sample));
      }),
  });
  checked.then(() => {
    isDatabaseChecked = true;
    resolve();
  }, fail);
});
await Promise.race([databaseChecked, databaseAway.promise]);

const broker = {
  databaseUrl,
  applicationName: session.applicationName,
  redisUrl: settings.REDIS_URL,
  prefix: settings.QUEUE_PREFIX,
  logger,
};
// Lanes are all that this process wakes of it; it adds no commit batches.
const producer = await openProducer({ ...broker, shardCount: 0 });
lifecycle.defer('producer', () => producer.close());

const newId = createIdGenerator(now);
const tailChannel = openTailChannel(broker);
lifecycle.defer('tail channel', () => tailChannel.close());
const tails = new TailHub({ channel: tailChannel, id: newId(), logger });
const exports = await openTaskQueue(broker, EXPORT_TASKS);
lifecycle.defer('exports', () => exports.close());

const metrics = createMetrics('api');
const clockWatch = watchClock({
  measure: async () => (isDatabaseChecked ? measureClock(database, clocks) : undefined),
  onMeasured: clock.noticeDifference,
  metrics,
  logger,
  lifecycle,
});
const replicaReads = openReplicaReads(settings, {
  primary: database,
  monotonicNow: clocks.monotonicNow,
  metrics,
  logger,
  lifecycle,
});
const refusedCredentials = new RefusedCredentials({
  countMax: REFUSED_PER_MINUTE_MAX,
  now,
  database,
  monotonicNow: () => performance.now(),
  logger,
});
metrics.counterBy(
  'reason',
  'sluice_api_refused_credentials_total',
  'Calls refused for their credentials or their rights, by reason',
  () => refusedCredentials.counts,
);
let requestCount = 0;
let failureCount = 0;
metrics.counter('sluice_api_requests_total', 'Requests answered', () => requestCount);
metrics.counter(
  'sluice_api_failures_total',
  'Requests answered with a 5xx status',
  () => failureCount,
);

const providerCalls = new Map<string, number>();
metrics.counterBy(
  'outcome',
  'sluice_vendor_calls_total',
  'Calls to the payment provider: ok, declined, refused, or unknown if no conclusive answer came',
  () => providerCalls,
);
const providerTracing = tracer &&
  requestTracer && { tracer, findParent: requestTracer.findTraceparent };
const provider = countProviderCalls(
  await openPaymentProvider(settings, providerTracing),
  providerCalls,
);
const catalogue = readCatalogue(settings.BILLING_CATALOGUE_FILE);
const mailer = createMailer({
  smtpUrl: settings.SMTP_URL,
  directory: settings.MAIL_DIRECTORY,
  from: settings.MAIL_FROM,
});
lifecycle.defer('mailer', async () => mailer.close());
const relay = createRelay({
  database,
  mailer,
  analytics:
    settings.ANALYTICS_URL === undefined
      ? undefined
      : { url: settings.ANALYTICS_URL, writeKey: settings.ANALYTICS_WRITE_KEY },
  provider,
  providerTimeoutMs: settings.VENDOR_TIMEOUT_MS,
  secret,
  consoleUrl: settings.CONSOLE_URL,
  now,
  onFailure: ({ topic, outboxId, attempt }, error) =>
    logger.warn(
      { topic, outboxId, attempt, error },
      'an outbox message could not be sent and is tried again; check the service that error names',
    ),
});
// Background work waits until the database was checked: its schema may be another version's.
const outbox = keepRelaying(() => (isDatabaseChecked ? relay() : Promise.resolve(0)), logger);
lifecycle.defer('outbox', () => outbox.stop());

const clearing = repeat('clear old rows', CLEARED_INTERVAL_MS, logger, async () => {
  if (isDatabaseChecked) await clearOldRows(database, now());
});
lifecycle.defer('clearing', () => clearing.stop());

const identityProviders = openIdentityProviders(settings, now);
const { OPERATOR_ACCOUNT_IDS: operatorAccountIds } = settings;
keepCheckingDomains(
  { database, secret, operatorAccountIds, ...identityProviders, logger, now },
  { isReady: () => isDatabaseChecked, lifecycle },
);

// Half of the time: the other half is for closing its dependencies.
const serverStop = new ServerStop({ inProgressMsMax: settings.DRAIN_TIMEOUT_MS / 2 });
const admin = adminPlaceOf(settings.NODE_ENV, settings.API_PORT, settings.API_ADMIN_PORT);
const checkReadiness = async () => {
  const isAnswering = await isDatabaseAnswering(database, READINESS_DEADLINE_MS);
  if (!isAnswering) return { isReady: false, checks: { database: 'does not answer' } };
  return {
    isReady: isDatabaseChecked,
    checks: {
      database: isDatabaseChecked ? 'answers' : 'answers, but is not checked yet',
      // Without it the primary is read.
      ...(replicaReads && { replica: replicaReads.describe() }),
    },
  };
};
const server = await buildServer({
  database,
  ...(replicaReads && { replicaReads }),
  logger,
  now,
  monotonicNow: () => performance.now(),
  refusedCredentials,
  signupAdmission,
  ...identityProviders,
  demoHosts: settings.DEMO_HOSTS,
  operatorAccountIds,
  openFleetBroker: createFleetBroker({ database, broker, lifecycle }),
  ...(settings.CONSOLE_DIRECTORY !== undefined && {
    consoleDirectory: settings.CONSOLE_DIRECTORY,
  }),
  consoleIntakeUrl: settings.CONSOLE_INTAKE_URL,
  ...(settings.CONSOLE_URL !== undefined && { consoleUrl: settings.CONSOLE_URL }),
  newId,
  secret,
  provider,
  providerEventSecret,
  providerTimeoutMs: settings.VENDOR_TIMEOUT_MS,
  catalogue,
  cardPaymentMs: settings.CARD_PAYMENT_MS,
  purchaseWaitMs: settings.PURCHASE_WAIT_MS,
  trustedProxies: settings.API_TRUSTED_PROXIES,
  addressConnectionCountMax: settings.API_ADDRESS_CONNECTION_COUNT_MAX,
  ratePerMinute: settings.API_RATE_LIMIT_PER_MINUTE,
  keyRatePerSecond: settings.API_KEY_RATE_LIMIT_PER_SECOND,
  recordRequest: ({ method, status }) => {
    if (method !== 'GET') outbox.noteChange();
    requestCount += 1;
    if (status >= 500) failureCount += 1;
  },
  checkReadiness,
  showsProbeDetails: admin.place === 'service',
  renderMetrics: async () => ({ contentType: metrics.contentType, body: await metrics.render() }),
  outgoingIpAddresses: settings.OUTGOING_IP_ADDRESSES,
  giveUpAfterMs: settings.WEBHOOK_GIVE_UP_AFTER_MS,
  importSizeBytesMax: settings.IMPORT_SIZE_BYTES_MAX,
  unfinishedImportSizeBytesMax: settings.IMPORT_UNFINISHED_SIZE_BYTES_MAX,
  importStorage: {
    sizeBytesMax: settings.IMPORT_STORAGE_SIZE_BYTES_MAX,
    sharePercent: settings.WORKSPACE_SHARE_PERCENT,
  },
  encryptedText,
  newSecret: () => randomBytes(SECRET_SIZE_BYTES).toString('hex'),
  wakeLane: (lane) => producer.wakeLane(lane),
  wakePurchaseWorkflow: (workflow) => producer.wakePurchaseWorkflow(workflow),
  wakeProviderEvents: () => producer.wakeProviderEvents(),
  openTail: (environmentId, filter, onLines) => tails.open(environmentId, filter, onLines),
  tailPlaces: new TailPlaces({
    database,
    countMax: settings.API_TAIL_COUNT_MAX,
    sharePercent: settings.WORKSPACE_SHARE_PERCENT,
    monotonicNow: () => performance.now(),
  }),
  // After an hour a live tail (`GET /v1/stream`) ends and its reader comes again, perhaps to another process.
  tailDurationMsMax: 3_600_000,
  wakeExport: (key) => exports.wake(key),
  ...(requestTracer && { requestTracer }),
  serverStop,
});
lifecycle.defer('server', () => serverStop.stop(server));
const port = await listen(server, settings.API_HOST, settings.API_PORT);
await serveAdmin(admin, {
  owner: 'API_ADMIN',
  host: settings.API_HOST,
  metrics,
  readiness: () =>
    checkReadiness().then(({ isReady, checks }) => ({ isReady, details: { checks } })),
  lifecycle,
  logger,
});
const heartbeat = heartbeatOf(
  database,
  { processId: newId(), service: 'api', ...identityOfProcess(process.pid) },
  () => ({ clockAheadMs: clockWatch.aheadMs() }),
);
// A beat to a silent Postgres would hold up a stop.
void databaseChecked.then(() => startHeartbeat({ ...heartbeat, logger, lifecycle }));
logger.info({ mail: mailer.description }, 'mails are sent this way');
logger.info({ host: settings.API_HOST, port }, 'the API is listening');

/** A random one: its signatures are valid only as long as this process lives. */
function temporarySecret(): string {
  if (settings.NODE_ENV === 'production')
    throw new AppError(
      'CONFIG_INVALID',
      'API_SECRET is required if NODE_ENV is production; make one with openssl rand -base64 32',
    );
  logger.warn('API_SECRET is not set, so tokens and mailed codes end with this process; set it');
  return randomBytes(32).toString('base64url');
}
