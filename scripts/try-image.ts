/**
 * `npm run try:image`: builds `infra/Dockerfile` in a folder, without Docker, and runs the services in it like
 * `infra/kubernetes`. They run as a user that is not root, on a root that cannot be written, without capabilities. Then
 * a call is posted, and must be delivered to a webhook. Needs root and `debootstrap`, and prints a line without them.
 * Some minutes.
 *
 * Postgres and Redis are the embedded ones, outside of the image; the network is the machine's.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createDatabase } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { readDockerfile } from './dockerfile-steps.ts';
import { buildStages, makeBase, run, startInImage, type BuiltImage } from './image-roots.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NODE_FOLDER = dirname(dirname(realpathSync(join(ROOT, 'node_modules/.bin/node'))));
const READY_MS_MAX = 60_000;
const DELIVERED_MS_MAX = 60_000;
const DATABASE = 'sluice';
const SEALING_KEYS = `1:${Buffer.alloc(32, 1).toString('base64')}`;

const missing = whatIsMissing();
if (missing === undefined) await tryImage();
else console.log(`not run: ${missing}`);

function whatIsMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may change the root of a process';
  try {
    run('debootstrap', ['--version']);
    run('unshare', ['--mount', '--propagation', 'private', 'true']);
  } catch {
    return 'debootstrap is not installed (Debian: apt-get install debootstrap), or no mounts may be made here';
  }
  return undefined;
}

async function tryImage(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-image-'));
  const closes: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const image = build(folder);
    await deliverACall(image, folder, closes);
    console.log('a call was delivered by the services of the image');
  } finally {
    for (const close of closes.toReversed()) await close();
  }
}

function build(folder: string): BuiltImage {
  const context = join(folder, 'context');
  const base = join(folder, 'base');
  // Committed files, without the ones of `.dockerignore`.
  run('sh', ['-ec', `mkdir ${context}; git -C ${ROOT} archive HEAD | tar -x -C ${context}`]);
  for (const pattern of readFileSync(join(ROOT, '.dockerignore'), 'utf8').trim().split('\n'))
    run('sh', ['-ec', `cd ${context}; ${removalOf(pattern)}`]);
  console.log('making a Debian with Node');
  makeBase(base, NODE_FOLDER, join(dirname(npmFile()), '..'));
  const stages = readDockerfile(readFileSync(join(ROOT, 'infra/Dockerfile'), 'utf8'));
  return buildStages(stages, folder, context, base, (line) => console.log(line));
}

/** `**\/name` is at any depth. */
function removalOf(pattern: string): string {
  const name = /^\*\*\/([\w.-]+)$/.exec(pattern)?.[1];
  if (name !== undefined) return `find . -name ${name} -prune -exec rm -r {} +`;
  if (/^[\w./-]+$/.test(pattern)) return `rm -rf ./${pattern}`;
  throw new Error(`.dockerignore: ${pattern} is of a form that this program does not know`);
}

function npmFile(): string {
  for (const each of (process.env['PATH'] ?? '').split(':')) {
    try {
      return realpathSync(join(each, 'npm'));
    } catch {
      continue;
    }
  }
  throw new Error('there is no npm in PATH');
}

async function deliverACall(
  image: BuiltImage,
  folder: string,
  closes: (() => unknown)[],
): Promise<void> {
  const postgres = await startEmbeddedPostgres({
    directory: join(folder, 'postgres'),
    durability: 'full',
    onProgress: () => {},
  });
  closes.push(postgres.remove);
  await postgres.createDatabase(DATABASE);
  const redis = await startRedisServer({ directory: join(folder, 'redis') });
  closes.push(redis.stop);
  const ports = {
    INTAKE_PORT: String(await findFreePort()),
    API_PORT: String(await findFreePort()),
    WORKER_PORT: String(await findFreePort()),
  };
  const settings = {
    ...ports,
    DATABASE_URL: postgres.url(DATABASE),
    REDIS_URL: redis.url,
    API_SECRET: 'a'.repeat(64),
    SEALING_KEYS,
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  };
  const start = (program: string): ChildProcess => {
    const child = startInImage(image, program, settings);
    closes.push(() => endOf(child));
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        // Errors, and output without a logger.
        if (!/"level":[1-4]\d,/.test(line)) console.log(`${program}: ${line.slice(0, 500)}`);
      });
    return child;
  };
  const migration = start('scripts/migrate.ts');
  const [code] = (await once(migration, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`the migration ended with ${code}`);
  const database = createDatabase({
    url: settings.DATABASE_URL,
    poolMax: 1,
    applicationName: 'try image',
    onError: () => {},
  });
  await seedDemoWorkspace(database);
  await database.destroy();
  for (const service of ['intake', 'worker', 'api']) start(`packages/${service}/src/main.ts`);
  for (const [name, port] of Object.entries(ports)) await untilReady(name, port);
  const page = await fetch(`http://127.0.0.1:${ports.API_PORT}/docs/pages/operations/keys`);
  if (page.status !== 200 || !(await page.text()).includes('Rotate a signing key'))
    throw new Error(`the API answers ${page.status} for a page of the documentation`);
  await expectDelivery(
    `http://127.0.0.1:${ports.INTAKE_PORT}`,
    `http://127.0.0.1:${ports.API_PORT}`,
  );
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

async function untilReady(name: string, port: string): Promise<void> {
  const deadlineMs = performance.now() + READY_MS_MAX;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.ok) {
      console.log(`ready: ${name.replace('_PORT', '').toLowerCase()}`);
      return;
    }
    if (performance.now() > deadlineMs)
      throw new Error(`${name} ${port} is not ready: ${answer?.status ?? 'no answer'}`);
    await sleep(200);
  }
}

async function expectDelivery(intake: string, api: string): Promise<void> {
  const receiver = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  const received = once(receiver, 'request', { signal: AbortSignal.timeout(DELIVERED_MS_MAX) });
  await once(receiver, 'listening');
  const post = async (url: string, authorization: string, body: object): Promise<void> => {
    const headers = { authorization, 'content-type': 'application/json', 'x-strict-mode': '1' };
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  };
  const { port } = receiver.address() as AddressInfo;
  await post(`${api}/v1/reporting_webhooks`, `Bearer ${DEMO.appKey}`, {
    name: 'receiver',
    endpoint: `http://127.0.0.1:${port}/hook`,
    events: ['event'],
  });
  const writeKey = `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`;
  await post(`${intake}/v1/identify`, writeKey, { userId: 'ada', traits: { plan: 'pro' } });
  await post(`${intake}/v1/track`, writeKey, { userId: 'ada', event: 'order_placed' });
  await received;
  receiver.close();
}
