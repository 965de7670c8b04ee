/**
 * All of Sluice in one go: hold the data, look at the ports, Postgres, schema, the three services. Each step that
 * succeeds registers its undoing. So a stop at any time undoes the finished steps in reverse: intake first, so that no
 * new call comes in, then worker and API, Postgres last.
 */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import {
  waitForDatabase,
  type DatabaseWaitOptions,
} from '@sluice/database/connection/database-wait';
import { requireFreePort } from '@sluice/platform/process/port-taken';
import { keepApiSecret, keepEncryptionKeys } from './keep-secret.ts';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { holdDataDirectory, type DataDirectory } from './data-directory.ts';
import { openingData, readOwnVersion, recordVersion } from './data-version.ts';
import { keepPostgres } from './keep-postgres.ts';
import { awaitLeftoverServices } from './leftover-services.ts';
import { renderBanner } from './banner.ts';
import { APPLICATION_NAME, prepareDatabase } from './prepare-database.ts';
import { subscribeDemo } from './subscribe-demo.ts';
import {
  processesOf,
  programOf,
  SMALL_HEAP_ARGUMENTS,
  SMALL_HEAP_ENVIRONMENT,
  type ProcessToStart,
} from './processes.ts';
import {
  givenEnvironment,
  serviceEnvironment,
  type ServiceEnvironment,
  serviceLogins,
  serviceUrls,
} from './service-environment.ts';
import { startService, type Service } from './service-process.ts';
import {
  addressOf,
  allowsPrivateAddresses,
  demoRefusal,
  type StandaloneSettings,
} from './settings.ts';

const DATABASE_NAME = 'sluice';
/** A service ends itself when draining takes too long; this much later it is ended. */
const STOP_GRACE_MS = 2_000;
/** The simulated payment provider is one. */
const SERVICE_COUNT = 4;

export interface StandaloneDeps {
  readonly settings: StandaloneSettings;
  /** Handed on to the services. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly execPath: string;
  readonly pid: number;
  /** The checkout. */
  readonly root: string;
  /** That there is for all of it. */
  readonly memoryBytes: number;
  readonly lifecycle: Lifecycle;
  readonly kill: (pid: number) => void;
  /** A line of a service's log. */
  readonly onServiceLine: (service: string, line: string) => void;
  /** A line for the person who started it. */
  readonly onNote: (line: string) => void;
}

/**
 * Puts each service into `services` as it is started, so that the caller can end them at any time.
 *
 * @returns the banner, once everything is ready.
 * @throws AppError with the next action; Error with a service's last words.
 */
export async function startStandalone(deps: StandaloneDeps, services: Service[]): Promise<string> {
  const { settings, lifecycle, onNote } = deps;
  const startedAtMs = performance.now();
  const refusal = demoRefusal(settings);
  const intake = addressOf(settings.INTAKE_HOST, settings.INTAKE_PORT);
  const api = addressOf(settings.API_HOST, settings.API_PORT);
  const worker = addressOf(settings.WORKER_HOST, settings.WORKER_PORT);
  const simulator =
    settings.STRIPE_SECRET_KEY === undefined
      ? addressOf(settings.SIMULATOR_HOST, settings.SIMULATOR_PORT)
      : undefined;

  const directory = await holdDataDirectory(resolve(deps.root, settings.SLUICE_DIRECTORY));
  lifecycle.defer('data directory', () => directory.release());
  await awaitLeftoverServices({
    holder: directory.earlierHolder,
    deadlineMs: SERVICE_COUNT * settings.DRAIN_TIMEOUT_MS + STOP_GRACE_MS,
    kill: deps.kill,
    onProgress: onNote,
  });
  for (const name of [
    'INTAKE',
    'API',
    'WORKER',
    ...(simulator === undefined ? [] : (['SIMULATOR'] as const)),
  ] as const) {
    await requireFreePort({
      owner: name,
      host: settings[`${name}_HOST`],
      port: settings[`${name}_PORT`],
    });
  }

  if (settings.REDIS_URL !== undefined) void reportRedisAway(settings.REDIS_URL, onNote);
  const tellWhoHolds = (): void => {
    const pids = services.map((service) => ({ name: service.name, pid: service.pid() }));
    directory.describe({
      pid: deps.pid,
      since,
      addresses: [intake, api],
      urls: { intake, api, worker, ...(simulator !== undefined && { simulator }) },
      settings: {
        SHARD_COUNT: String(settings.SHARD_COUNT),
        ...(simulator !== undefined && { SIMULATOR_URL: simulator }),
      },
      // With queues in a Redis, a command that knows the database alone would put work into queues without a worker.
      kept: [
        ...(settings.DATABASE_URL === undefined && settings.REDIS_URL === undefined
          ? (['DATABASE_URL'] as const)
          : []),
        ...(deps.environment['SEALING_KEYS'] ? [] : (['SEALING_KEYS'] as const)),
      ],
      services: pids.flatMap(({ name, pid }) => (pid === undefined ? [] : [{ name, pid }])),
    });
  };
  const since = new Date().toISOString();
  // The last of these is the first to be stopped.
  const addresses = {
    ...(simulator !== undefined && { 'billing-vendor': simulator }),
    api,
    worker,
    intake,
  };
  const environment = Promise.withResolvers<ServiceEnvironment>();
  let isTold = false;
  const begin = ({ name, readyUrls, isToldLater }: ProcessToStart, known: ServiceEnvironment) => {
    const service = startService({
      name,
      execPath: deps.execPath,
      args: [
        '--disable-warning=ExperimentalWarning',
        ...SMALL_HEAP_ARGUMENTS,
        // A start is bound by CPU: it loads some 700 modules.
        `--import=${pathToFileURL(join(deps.root, 'scripts/quick-start.mjs')).href}`,
        join(deps.root, 'packages', programOf(name)),
      ],
      environment: { ...SMALL_HEAP_ENVIRONMENT, ...known },
      ...(isToldLater && { laterEnvironment: environment.promise }),
      readyUrls,
      // The services in it stop one after another.
      stopDeadlineMs: readyUrls.length * settings.DRAIN_TIMEOUT_MS + STOP_GRACE_MS,
      onLine: (line) => deps.onServiceLine(name, line),
      onNote,
      onStarted: () => (isTold ? tellWhoHolds() : undefined),
    });
    services.push(service);
  };
  const processes = processesOf(addresses, settings);
  const given = givenEnvironment(deps.environment);
  // Beside the start of Postgres: to load the modules is most of a start.
  for (const each of processes.filter(({ isToldLater }) => isToldLater)) begin(each, given);
  const consoleBuilt = buildConsole(deps);
  const database = await openDatabase(deps, directory, refusal === undefined);

  const told = {
    API_SECRET: await keepApiSecret(directory.path),
    ...(await consoleBuilt),
    ...serviceEnvironment(deps, database, directory.path),
    SEALING_KEYS: deps.environment['SEALING_KEYS'] || (await keepEncryptionKeys(directory.path)),
  };
  environment.resolve(told);
  isTold = true;
  for (const each of processes.filter(({ isToldLater }) => !isToldLater)) begin(each, told);
  for (const service of services) lifecycle.defer(service.name, () => service.stop());
  tellWhoHolds();
  await Promise.all(services.map((service) => service.ready));
  if (refusal === undefined && simulator !== undefined) await subscribeDemo(api, onNote);

  return renderBanner({
    intake,
    api,
    worker,
    simulator,
    postgres: database.description,
    queues: settings.REDIS_URL === undefined ? 'in Postgres' : 'in Redis (REDIS_URL is set)',
    directory: directory.path,
    root: deps.root,
    firstWaitMs: settings.WEBHOOK_LISTED_FAILURE_WAIT_MS,
    startedInMs: performance.now() - startedAtMs,
    demoRefusal: refusal,
    allowsPrivateAddresses: allowsPrivateAddresses(settings),
  });
}

/** Without a console everything else runs all the same. */
async function buildConsole({
  root,
  onNote,
}: StandaloneDeps): Promise<{ readonly CONSOLE_DIRECTORY?: string }> {
  try {
    const { buildConsole: build } = (await import(
      pathToFileURL(join(root, 'scripts/build-console.mjs')).href
    )) as { buildConsole: () => Promise<string> };
    return { CONSOLE_DIRECTORY: await build() };
  } catch (error) {
    onNote(`the web console could not be built, all else runs: ${(error as Error).message}`);
    return { CONSOLE_DIRECTORY: join(root, 'node_modules/.cache/sluice-console/missing') };
  }
}

interface OpenedDatabase {
  /** Of its owner. */
  readonly url: string;
  readonly description: string;
  /** Settings of the services: of each its own login. Empty if the server is somebody else's. */
  readonly serviceUrls: Readonly<Record<string, string>>;
}

/** The database, ready for the services. */
async function openDatabase(
  deps: StandaloneDeps,
  directory: DataDirectory,
  hasDemo: boolean,
): Promise<OpenedDatabase> {
  const { DATABASE_URL: url } = deps.settings;
  if (url !== undefined) {
    await waitForDatabase({
      url,
      applicationName: APPLICATION_NAME,
      lifecycle: deps.lifecycle,
      logger: notesOf(deps.onNote),
      join: () => prepareDatabase(url, hasDemo, [], deps.onNote),
    });
    return { url, description: 'as DATABASE_URL says', serviceUrls: {} };
  }
  return openingData(directory.path, async () => {
    const database = await startDatabase(deps, directory);
    const logins = serviceLogins(database.url);
    await prepareDatabase(database.url, hasDemo, logins, deps.onNote);
    await recordVersion(directory.path, await readOwnVersion(deps.root, Date.now()));
    return { ...database, serviceUrls: serviceUrls(database.url, logins) };
  });
}

/** Its lines, for a person. */
const notesOf = (onNote: (line: string) => void): DatabaseWaitOptions<void>['logger'] => ({
  info: (_fields, message) => onNote(message),
  warn: ({ reason }: { readonly reason?: string }, message) => onNote(`${message}: ${reason}`),
});

async function startDatabase(
  { lifecycle, memoryBytes, onNote }: StandaloneDeps,
  directory: DataDirectory,
): Promise<{ url: string; description: string }> {
  const postgres = await keepPostgres(DATABASE_NAME, {
    directory: directory.path,
    memoryBytes,
    onProgress: onNote,
    onNote,
  });
  lifecycle.defer('postgres', () => postgres.stop());
  const description = `127.0.0.1:${postgres.port}, database ${DATABASE_NAME} (embedded)`;
  return { url: postgres.url, description };
}
