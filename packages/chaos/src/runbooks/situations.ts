/**
 * The situation of each runbook: its cause in a running fleet, the events while the operator works, and the checks
 * afterwards. The operator's commands are in `docs/operations/runbooks/`.
 */
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { tryApiThroughProxy } from './api-through-proxy.ts';
import { tryHostileFraming } from './hostile-framing.ts';
import { readAllTheTime } from './traffic.ts';
import type { World, WorldOptions } from './world.ts';

export interface Situation {
  readonly world?: WorldOptions;
  /** Brings it about. Traffic is on. */
  begin(world: World): Promise<void>;
  /** By the names in the page's `meanwhile` comments. */
  readonly meanwhile?: Readonly<Record<string, (world: World) => Promise<void>>>;
  /**
   * Traffic is off, and every acknowledged event is stored.
   *
   * @throws Error if a promise does not hold.
   */
  end?(world: World): Promise<void>;
}

const POLL_INTERVAL_MS = 100;
const WAIT_MS_MAX = 60_000;

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`not within a minute: ${what}`);
    await sleep(POLL_INTERVAL_MS);
  }
}

function assert(what: string, holds: boolean): void {
  if (!holds) throw new Error(`does not hold: ${what}`);
}

const delivered = ({ endpoint }: World, count: number): Promise<void> =>
  until(`${count} deliveries`, () => endpoint.received.length >= count);

const isDrained = async ({ database }: World): Promise<boolean> => {
  const { rows } = await sql<{ left: number }>`
    select count(*)::int as left from lanes where last_sequence > cursor_sequence`.execute(
    database,
  );
  return rows[0]?.left === 0;
};

/** All acknowledged calls are applied, and no new ones come. */
async function settle(world: World): Promise<void> {
  await world.traffic.stop();
  await world.traffic.expectStored();
  await until('every delivery is made', () => isDrained(world));
}

/** Someone else's calls, as fast as they are answered, until the returned function is called. */
function flood(url: string, key: string): () => Promise<{ putOff: number; refused: number }> {
  const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
  let isStopping = false;
  const counts = { putOff: 0, refused: 0 };
  const running = Promise.all(
    Array.from({ length: 16 }, async (_, client) => {
      for (let n = 0; !isStopping; n++) {
        const answer = await fetch(`${url}/v1/track`, {
          method: 'POST',
          headers: { authorization, 'X-Strict-Mode': '1' },
          body: JSON.stringify({ userId: `crowd-${client}-${n % 50}`, event: 'flooded' }),
        }).catch(() => undefined);
        await answer?.text();
        if (answer?.status === 429 && answer.headers.has('retry-after')) counts.putOff++;
        else if (answer && answer.status !== 200) counts.refused++;
      }
    }),
  );
  return async () => {
    isStopping = true;
    await running;
    return counts;
  };
}

/** Of a balancer that learns of a new process a moment late. */
const CLOSED_CONNECTIONS_MAX = 10;

let stopReading: ReturnType<typeof readAllTheTime>;
let stopFlood: ReturnType<typeof flood>;
let deliveredBefore: readonly string[] = [];

export const situations: Readonly<Record<string, Situation>> = {
  'redis-lost': {
    async begin(world) {
      await settle(world);
      await world.redis.kill();
      await rm(world.redisDirectory, { recursive: true });
      world.traffic.start();
      await world.traffic.more(20);
    },
    end: refusesNothing,
  },

  'endpoint-dead-for-days': {
    async begin(world) {
      await delivered(world, 1);
      world.endpoint.status = 500;
      await world.traffic.more(20);
    },
    meanwhile: {
      async 'the endpoint answers again'(world) {
        world.endpoint.status = 200;
        await world.traffic.more(1);
      },
      async 'the endpoint refuses one body'(world) {
        await settle(world);
        world.endpoint.refusesNext = true;
        world.traffic.start();
        await until('it refuses', () => !world.endpoint.refusesNext);
      },
    },
    async end(world) {
      await refusesNothing(world);
      await until('every delivery is made', () => isDrained(world));
      const { rows } = await sql<{ abandoned: number }>`
        select count(*)::int as abandoned from delivery_attempts where outcome = 'abandoned'`.execute(
        world.database,
      );
      assert('at most the one that was skipped is given up', (rows[0]?.abandoned ?? 0) <= 1);
    },
  },

  'replay-a-day': {
    async begin(world) {
      await delivered(world, 10);
      await settle(world);
      deliveredBefore = [...world.endpoint.received];
      world.endpoint.received.length = 0;
    },
    async end({ endpoint }) {
      // Several are under way at the same time, so that they may arrive in another order than they left in.
      assert(
        'the same deliveries come again, each once',
        JSON.stringify(endpoint.received.toSorted()) === JSON.stringify(deliveredBefore.toSorted()),
      );
      assert('all are signed', endpoint.unsigned.length === 0);
    },
  },

  'rotate-every-key': {
    async begin(world) {
      await delivered(world, 1);
    },
    meanwhile: {
      async 'the receiver takes the new secret only'(world) {
        const count = world.endpoint.received.length;
        await delivered(world, count + 1);
        world.endpoint.keys = [await world.shell.read('NEW_SECRET')];
        await delivered(world, count + 3);
      },
      async 'the senders use the new write key'(world) {
        const writeKey = await world.shell.read('NEW_WRITE_KEY');
        await world.traffic.proveKey(writeKey);
        world.traffic.writeKey = writeKey;
        await world.traffic.more(20);
      },
    },
    async end(world) {
      await refusesNothing(world);
      await until('every delivery is made', () => isDrained(world));
      assert('all are signed', world.endpoint.unsigned.length === 0);
      const old = await Promise.all([
        world.traffic.isKeyGood(DEMO.writeKey),
        world.shell.run(`SLUICE_KEY=${DEMO.appKey} sluice webhooks list`).catch(() => ''),
        world.shell
          .run(`SLUICE_ACCOUNT_TOKEN=${DEMO.accountToken} sluice keys list`)
          .catch(() => ''),
      ]);
      assert(
        'the old keys are refused',
        old.every((opened) => !opened),
      );
    },
  },

  'sealing-key-lost': {
    async begin(world) {
      await delivered(world, 1);
      for (const each of [...world.processes.api, ...world.processes.worker])
        await each.kill('SIGTERM');
      await world.traffic.more(20);
    },
    meanwhile: {
      async 'the receiver takes the new secret only'(world) {
        world.endpoint.keys = [await world.shell.read('NEW_SECRET')];
      },
    },
    async end(world) {
      await refusesNothing(world);
      await until('every delivery is made', () => isDrained(world));
      assert('all are signed', world.endpoint.unsigned.length === 0);
    },
  },

  'workspace-floods': {
    async begin(world) {
      const key = 'the key of the workspace that floods';
      await sql`
        insert into api_credentials (account_id, environment_id, kind, name, secret_hash, secret_hint)
        values (${DEMO.invoicedAccountId}, ${DEMO.invoicedEnvironmentId}, 'pipelines', 'flood',
                ${createHash('sha256').update(key).digest()}, 'oods')`.execute(world.database);
      await sleep(1_000);
      stopFlood = flood(world.traffic.url, key);
      await world.traffic.more(20);
    },
    async end(world) {
      const { putOff, refused } = await stopFlood();
      await refusesNothing(world);
      assert('the one that floods is put off', putOff > 0);
      assert('and never refused otherwise', refused === 0);
    },
  },

  'events-are-not-processed': {
    async begin(world) {
      await delivered(world, 1);
      for (const worker of world.processes.worker) void worker.kill('SIGSTOP');
      await world.traffic.more(25);
    },
    end: refusesNothing,
  },

  'postgres-full': {
    world: { diskSizeMebibytes: 192 },
    async begin(world) {
      await delivered(world, 1);
      await sql`select make_event_partitions('2020-01-01', 1)`.execute(world.database);
      const fill = (rows: number) =>
        sql`
          insert into events (environment_id, occurred_at, received_at, kind, event_id, data)
          select 99, '2020-01-02', '2020-01-02', 'event', gen_random_uuid()::text,
                 jsonb_build_object('of', repeat(md5(n::text), 10))
            from generate_series(1, ${rows}::int) n`.execute(world.database);
      // Ever smaller, until not even a few rows find a place.
      for (const rows of [20_000, 1_000, 20])
        while (
          await fill(rows).then(
            () => true,
            () => false,
          )
        );
      await world.traffic.more(25);
    },
    end: refusesNothing,
  },

  'upgrade-or-restart': {
    world: { proxy: 'nginx' },
    async begin({ traffic, apiUrl }) {
      await traffic.more(20);
      stopReading = readAllTheTime(apiUrl);
    },
    async end(world) {
      const { answered, closed, refused } = await stopReading();
      assert(
        `no call of the API was refused: ${refused.slice(0, 3).join('; ')}`,
        refused.length === 0,
      );
      assert(`few connections were closed: ${closed}`, closed <= CLOSED_CONNECTIONS_MAX);
      assert('the API was called all the time', answered > 0);
      await refusesNothing(world);
      if (world.nginx === undefined) return;
      const { ports } = world.nginx;
      const broken = await tryHostileFraming(ports.intake, world.database);
      assert(`the proxy keeps broken framing away: ${broken.join('; ')}`, broken.length === 0);
      const problems = await tryApiThroughProxy(ports, world.database);
      assert(`the API is itself behind the proxy: ${problems.join('; ')}`, problems.length === 0);
    },
  },

  'backup-and-restore': {
    world: { postgres: 'installed' },
    async begin(world) {
      await delivered(world, 5);
      await settle(world);
      // Some that wait in Redis when it is backed up.
      for (const worker of world.processes.worker) await worker.kill('SIGTERM');
      world.traffic.start();
      await world.traffic.more(30);
      await world.traffic.stop();
    },
    meanwhile: {
      async 'both stores are gone'(world) {
        await world.loseEverything();
      },
      async 'the services are started'(world) {
        await world.startServices();
      },
    },
    end: refusesNothing,
  },
};

function refusesNothing({ traffic }: World): Promise<void> {
  assert(
    `no call was refused: ${traffic.refused.slice(0, 3).join('; ')}`,
    traffic.refused.length === 0,
  );
  return Promise.resolve();
}
