/**
 * Takes a node of Citus away under load, and brings it back.
 *
 * It counts calls that were posted, refused, lost and doubled. It measures for how long the workspaces of the other
 * nodes were without a newly applied event.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  insertTestKeys,
  insertTestWorkspace,
  type WorkspaceKeys,
} from '@sluice/database/testing/test-tenants';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { openCitus, type CitusUnderTest } from './citus-under-test.ts';

export interface NodeDrillOptions {
  /** Of the coordinator, a superuser's. */
  readonly serverUrl: string;
  /** `cut`: connections to the node end, and new ones are refused. `hold`: no packet passes, and no end gets an error. */
  readonly kind: 'cut' | 'hold';
  readonly awayMs: number;
  /** Events a second, of all workspaces together. */
  readonly rate: number;
}

/** Of the workspaces of a side. */
export interface SideReport {
  readonly workspaces: number;
  readonly posted: number;
  readonly refused: number;
  readonly lost: number;
  readonly doubled: number;
}

interface WhileAway {
  /** Their events that intake acknowledged from the loss of the node to its return. */
  readonly acknowledged: number;
  /** Their events that were applied in that time. */
  readonly applied: number;
  /** The longest time without a newly applied event. */
  readonly longestStopMs: number;
}

export interface NodeDrillReport {
  readonly kind: string;
  readonly awayMs: number;
  /** Workspaces of the nodes that stay. */
  readonly others: SideReport & WhileAway;
  /** Workspaces of the node that is away. */
  readonly own: SideReport;
  /** From the return of the node until the last acknowledged event was applied. */
  readonly recoveryMs: number;
}

const WORKER_COUNT = 2;
const WORKSPACE_COUNT = 16;
const FIRST_ENVIRONMENT_ID = 101;
const PEOPLE_A_WORKSPACE = 20;
const BEFORE_MS = 3_000;
const LOOK_INTERVAL_MS = 100;
const DRAIN_DEADLINE_MS = 180_000;
const CALL_DEADLINE_MS = 10_000;

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));

/** Of a workspace. */
interface Sent extends WorkspaceKeys {
  readonly acknowledged: string[];
  readonly acknowledgedAtMs: number[];
  posted: number;
  refused: number;
}

export async function runNodeDrill(options: NodeDrillOptions): Promise<NodeDrillReport> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-nodes-'));
  const redis = await startRedisServer({ directory: join(directory, 'redis') });
  const services: ServiceUnderTest[] = [];
  let citus: CitusUnderTest | undefined;
  try {
    citus = await openCitus(options.serverUrl);
    const workspaces = await makeWorkspaces(citus);
    const settings = {
      DATABASE_URL: citus.url,
      REDIS_URL: redis.url,
      INTAKE_SPILL_DIRECTORY: join(directory, 'spill'),
    };
    const start = async (service: 'intake' | 'worker', port: string): Promise<string> => {
      const started = await startServiceUnderTest(mainOf(service), { ...settings, [port]: '0' });
      services.push(started);
      return started.url;
    };
    const intakeUrl = await start('intake', 'INTAKE_PORT');
    for (let worker = 0; worker < WORKER_COUNT; worker++) await start('worker', 'WORKER_PORT');
    return await measure(citus, intakeUrl, workspaces, options);
  } finally {
    await Promise.all(services.map((each) => each.kill('SIGKILL')));
    await citus?.close();
    await redis.kill();
    await rm(directory, { recursive: true, force: true });
  }
}

async function makeWorkspaces({ database }: CitusUnderTest): Promise<Sent[]> {
  const workspaces: Sent[] = [];
  for (let index = 0; index < WORKSPACE_COUNT; index++) {
    const workspace = {
      environmentId: FIRST_ENVIRONMENT_ID + index,
      writeKey: `write_key_${index}`,
      siteId: `site_${index}`,
      apiKey: `api_key_${index}`,
      appKey: `app_key_${index}`,
    };
    await insertTestWorkspace(database, workspace.environmentId);
    await insertTestKeys(database, workspace);
    workspaces.push({
      ...workspace,
      acknowledged: [],
      acknowledgedAtMs: [],
      posted: 0,
      refused: 0,
    });
  }
  return workspaces;
}

async function measure(
  citus: CitusUnderTest,
  intakeUrl: string,
  workspaces: readonly Sent[],
  { kind, awayMs, rate }: NodeDrillOptions,
): Promise<NodeDrillReport> {
  const behind = await citus.listBehindWay(workspaces.map(({ environmentId }) => environmentId));
  const own = workspaces.filter(({ environmentId }) => behind.has(environmentId));
  const others = workspaces.filter(({ environmentId }) => !behind.has(environmentId));
  if (own.length === 0 || others.length === 0) throw new Error('all workspaces are on one node');
  const load = startLoad(intakeUrl, workspaces, rate);
  await sleep(BEFORE_MS);
  const lostAtMs = Date.now();
  citus.way[kind]();
  await sleep(awayMs);
  const backAtMs = Date.now();
  // Before the return: a batch that waited for the node has the time of its beginning.
  const whileAway = await readWhileAway(citus, others, lostAtMs, backAtMs);
  citus.way.restore();
  await load.stop();
  const deadlineMs = performance.now() + DRAIN_DEADLINE_MS;
  while ((await countLost(citus, workspaces)) > 0 && performance.now() < deadlineMs)
    await sleep(LOOK_INTERVAL_MS);
  const recoveryMs = Date.now() - backAtMs;
  const report = async (side: readonly Sent[]): Promise<SideReport> => ({
    workspaces: side.length,
    posted: side.reduce((sum, { posted }) => sum + posted, 0),
    refused: side.reduce((sum, { refused }) => sum + refused, 0),
    lost: await countLost(citus, side),
    doubled: await countDoubled(citus, side),
  });
  return {
    kind,
    awayMs,
    others: { ...(await report(others)), ...whileAway },
    own: await report(own),
    recoveryMs,
  };
}

/** By the commit batches of the events of a side. Unix milliseconds. */
async function readWhileAway(
  { database }: CitusUnderTest,
  side: readonly Sent[],
  lostAtMs: number,
  backAtMs: number,
): Promise<WhileAway> {
  const numbers: string[] = [];
  for (const { environmentId } of side) {
    const { rows } = await sql<{ number: string }>`
      select envelope_number as number from event_ids where environment_id = ${environmentId}`.execute(
      database,
    );
    numbers.push(...rows.map(({ number }) => number));
  }
  const { rows } = await sql<{ atMs: number }>`
    select (extract(epoch from e.processed_at) * 1000)::float8 as "atMs"
      from unnest(${numbers}::bigint[]) as n (number) join envelopes e on e.envelope_number = n.number`.execute(
    database,
  );
  const times = rows.map(({ atMs }) => atMs);
  const isWhileAway = (atMs: number) => atMs > lostAtMs && atMs < backAtMs;
  const inside = times.filter(isWhileAway).toSorted((a, b) => a - b);
  const steps = [lostAtMs, ...inside, backAtMs];
  const stops = steps.slice(1).map((atMs, place) => atMs - (steps[place] ?? atMs));
  const acknowledged = side.flatMap((each) => each.acknowledgedAtMs).filter(isWhileAway).length;
  return { acknowledged, applied: inside.length, longestStopMs: Math.round(Math.max(...stops)) };
}

async function countLost({ database }: CitusUnderTest, side: readonly Sent[]): Promise<number> {
  let sum = 0;
  for (const { environmentId, acknowledged } of side) {
    const { rows } = await sql<{ count: number }>`
      select count(distinct event_id)::int as count from events
       where environment_id = ${environmentId} and event_id = any (${acknowledged}::text[])`.execute(
      database,
    );
    sum += acknowledged.length - (rows[0]?.count ?? 0);
  }
  return sum;
}

async function countDoubled({ database }: CitusUnderTest, side: readonly Sent[]): Promise<number> {
  let sum = 0;
  for (const { environmentId } of side) {
    const { rows } = await sql<{ count: number }>`
      select (count(*) - count(distinct event_id))::int as count from events
       where environment_id = ${environmentId}`.execute(database);
    sum += rows[0]?.count ?? 0;
  }
  return sum;
}

function startLoad(intakeUrl: string, workspaces: readonly Sent[], rate: number) {
  let isStopping = false;
  const calls = new Set<Promise<void>>();
  const run = async (): Promise<void> => {
    const startedAtMs = performance.now();
    for (let number = 0; !isStopping; number++) {
      const workspace = workspaces[number % workspaces.length];
      if (workspace) {
        const call = post(intakeUrl, workspace, number).finally(() => calls.delete(call));
        calls.add(call);
      }
      await sleep(Math.max(0, startedAtMs + (number * 1_000) / rate - performance.now()));
    }
    await Promise.all(calls);
  };
  const running = run();
  return {
    async stop(): Promise<void> {
      isStopping = true;
      await running;
    },
  };
}

/** Once: a call that is refused is not sent again, so that refusals are counted as a client meets them. */
async function post(intakeUrl: string, workspace: Sent, number: number): Promise<void> {
  const eventId = `drill-${number}`;
  workspace.posted++;
  const status = await fetch(`${intakeUrl}/v1/track`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${workspace.writeKey}:`).toString('base64')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      userId: `person ${number % PEOPLE_A_WORKSPACE}`,
      event: 'drilled',
      messageId: eventId,
    }),
    signal: AbortSignal.timeout(CALL_DEADLINE_MS),
  }).then(
    (answer) => answer.status,
    () => undefined,
  );
  if (status === 200) {
    workspace.acknowledged.push(eventId);
    workspace.acknowledgedAtMs.push(Date.now());
  } else workspace.refused++;
}
