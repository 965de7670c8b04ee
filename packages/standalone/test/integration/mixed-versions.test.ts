/**
 * Old and new versions side by side: the order that the old version promised holds, and each event counts once. The old
 * one is from git, the last that kept no log of pending batches. Its calls about one person keep their order if they
 * name the person by one identifier.
 */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { openHistory, unpackVersion } from './earlier-version.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const LOG = 'packages/platform/src/queue/pending-log.ts';
/** Half a minute, ten times longer on a busy machine. */
const TEST_TIMEOUT_MS = 480_000;
const WAIT = { timeout: 180_000, interval: 50 };
const SHARD_COUNT = 4;
const PEOPLE = 6;
const ROUNDS = 12;

const history = await openHistory(ROOT);
let old = '';
beforeAll(async () => {
  if (history === undefined) return;
  const words = ['-C', history, 'log', '--diff-filter=A', '--format=%H', '--', LOG];
  const { stdout } = await promisify(execFile)('git', words);
  old = await unpackVersion(ROOT, history, { commit: `${stdout.trim()}^`, schema: '' });
});
afterAll(async () => {
  if (old !== '') await rm(old, { recursive: true, force: true });
  if (history !== undefined && history !== ROOT)
    await rm(history, { recursive: true, force: true });
});

type Version = 'old' | 'new';
type Service = 'intake' | 'worker';

async function startWorld(broker: 'redis' | 'postgres') {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const settings = {
    DATABASE_URL: url,
    REDIS_URL: broker === 'redis' ? testRedisUrl() : '',
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: String(SHARD_COUNT),
  };
  const start = async (service: Service, version: Version): Promise<ServiceUnderTest> => {
    const folder = version === 'old' ? old : ROOT;
    const started = await startServiceUnderTest(join(folder, `packages/${service}/src/main.ts`), {
      ...settings,
      [`${service.toUpperCase()}_PORT`]: '0',
    });
    onTestFinished(() => started.kill('SIGKILL').then(() => undefined));
    return started;
  };
  return { database, start };
}

async function send({ url }: ServiceUnderTest, path: string, body: object): Promise<void> {
  const answer = await fetch(`${url}/v1/${path}`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
      'X-Strict-Mode': '1',
    },
    body: JSON.stringify(body),
  });
  expect([answer.status, (await answer.text()).trim()]).toEqual([200, '{}']);
}

/** Each person by one id: attributes, events, a group, and a deletion in the middle. @param from - the first round. */
async function sendRounds(intake: ServiceUnderTest, from: number): Promise<void> {
  const people = Array.from({ length: PEOPLE }, (_, index) => `person-${index}`);
  await Promise.all(
    people.map(async (userId) => {
      for (let round = from; round < from + ROUNDS; round++) {
        if (round === from + ROUNDS / 2)
          await send(intake, 'track', { userId, event: 'User Deleted' });
        await send(intake, 'identify', { userId, traits: { round, [`in${round}`]: true } });
        await send(intake, 'track', { userId, event: `event ${round}` });
        await send(intake, 'group', { userId, groupId: `group-${userId}`, traits: { round } });
      }
    }),
  );
}

/** @param isRelated - whether relationships are looked at. */
async function stateOf(database: Database, isRelated = true): Promise<unknown> {
  const { rows: people } = await sql`
    select p.id, p.attributes, r.related
      from people p, lateral (select case when ${isRelated} then count(*)::int else 1 end as related from relationships r
                               where r.environment_id = p.environment_id and r.person_id = p.person_id) r
     where p.id like 'person-%' order by p.id`.execute(database);
  const { rows: objects } = await sql`
    select object_id as id, attributes ->> 'round' as round from objects
     where object_id like 'group-%' order by object_id`.execute(database);
  const { rows: events } = await sql`
    select p.id, array_agg(e.name order by e.name) as names
      from events e join people p using (environment_id, person_id)
     where e.name like 'event %' group by p.id order by p.id`.execute(database);
  return { people, objects, events };
}

/** Rows that the rounds from `from` on leave: data from before the deletion are gone. */
function expectedAfter(from: number): unknown {
  const last = from + ROUNDS - 1;
  const left = Array.from({ length: ROUNDS / 2 }, (_, index) => from + ROUNDS / 2 + index);
  const ids = Array.from({ length: PEOPLE }, (_, index) => `person-${index}`);
  const attributes = {
    round: last,
    ...Object.fromEntries(left.map((round) => [`in${round}`, true])),
  };
  return {
    people: ids.map((id) => ({ id, attributes, related: 1 })),
    objects: ids.map((id) => ({ id: `group-${id}`, round: String(last) })),
    events: ids.map((id) => ({ id, names: left.map((round) => `event ${round}`).toSorted() })),
  };
}

/** The first is the sequence of an upgrade. A mix takes half a minute, so the others run with `TEST_ALL_MIXES=1`. */
const MIXES = [
  ['redis', 'old', 'new'],
  ['redis', 'new', 'old'],
  ['postgres', 'old', 'new'],
  ['postgres', 'new', 'old'],
] as const;

test
  .skipIf(history === undefined)
  .each(process.env['TEST_ALL_MIXES'] === '1' ? MIXES : MIXES.slice(0, 1))(
  'on %s, an intake of the %s version and a worker of the %s one; then both are new',
  { timeout: TEST_TIMEOUT_MS },
  async (broker, intakeVersion, workerVersion) => {
    const { database, start } = await startWorld(broker);
    const [intake, worker] = await Promise.all([
      start('intake', intakeVersion),
      start('worker', workerVersion),
    ]);
    await sendRounds(intake, 0);
    // An older worker beside a newer intake puts a relationship in no order with the person's other calls.
    const isInOrder = workerVersion === 'new';
    await vi.waitFor(
      async () => expect(await stateOf(database, isInOrder)).toEqual(expectedAfter(0)),
      WAIT,
    );

    // Workers first, and calls under way meanwhile.
    const newWorker = start('worker', 'new');
    const newIntake = start('intake', 'new');
    await sendRounds(intake, ROUNDS);
    await newWorker;
    await worker.kill('SIGTERM');
    await intake.kill('SIGTERM');
    await sendRounds(await newIntake, 2 * ROUNDS);
    await vi.waitFor(
      async () => expect(await stateOf(database)).toEqual(expectedAfter(2 * ROUNDS)),
      WAIT,
    );
  },
);
