/**
 * A webhook with a real lane in a real Postgres, for tests.
 *
 * A test has events to log, a clock of its own, and a receiver whose answers it chooses.
 */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import type { LaneTaking, LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { listAttempts, listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { skipHead } from '@sluice/database/replays/lane-actions';
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import { findLane, type LaneReport } from '@sluice/database/delivery/lanes';
import { BY_TEST } from '@sluice/database/testing/testing';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { updateWebhook, type WebhookSettings } from '@sluice/database/webhooks/webhooks';
import type { ClockDifference } from '@sluice/domain/values/clock-difference';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import type { LanePolicy } from '@sluice/domain/delivery/lane';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import {
  deliverLane,
  type DeliverLaneDeps,
  type LaneDelivery,
  type LaneOutcome,
} from '../../../src/delivery/deliver-webhook.ts';
import { FairPermits } from '../../../src/scheduling/fair-permits.ts';
import type { HttpOutcome, HttpPost } from '../../../src/http/http-outcome.ts';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import { replayDeliveries, type ReplayDeps } from '../../../src/delivery/replay-deliveries.ts';
import type { LanePermits } from '../../../src/scheduling/lane-permits.ts';
import { createLaneStore, type LaneStore } from '../../../src/lane/lane-store.ts';
import type { Presence, TakenLane } from '../../../src/lane/lane-drain-deps.ts';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import { WorkerClock } from '../../../src/process/worker-clock.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const SIGNING_KEY = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';

export const POLICY: LanePolicy = {
  listedFailureWaitMs: HOUR_MS,
  backoffBaseMs: 10_000,
  backoffCapMs: HOUR_MS,
  giveUpAfterMs: 7 * DAY_MS,
  windowMax: 8,
};

export type Behave = (request: HttpPost, eventId: string) => HttpOutcome | Promise<HttpOutcome>;

export const OK: HttpOutcome = {
  outcome: 'response',
  status: 200,
  head: '',
  body: '',
  durationMs: 3,
};
export const status = (code: number): HttpOutcome => ({
  outcome: 'response',
  status: code,
  head: `HTTP/1.1 ${code}`,
  body: `said ${code}`,
  durationMs: 3,
});
export const TIMEOUT: HttpOutcome = {
  outcome: 'failure',
  failure: 'timeout',
  message: 'no answer',
  status: null,
  head: '',
  body: '',
  durationMs: 4_000,
};

export interface LaneWorld extends LaneKey {
  readonly database: Database;
  readonly key: LaneKey;
  /** Event ids, in the order in which requests were started. */
  readonly sent: string[];
  readonly wakes: (number | 'now')[];
  nowMs: number;
  /** How far the clock is ahead by which a process knows that its lease is over. */
  monotonicAheadMs: number;
  /** How far ahead of Postgres' that is; its days pass for both. */
  clock: ClockDifference;
  /** Errors with which workers ended. */
  readonly endings: unknown[];
  behave: Behave;
  /** Logs so many events about no person, named e1, e2, … over the whole life of the world. */
  log(count: number): Promise<LoggedLane[]>;
  /** Logs an event about each of these people, named as `log` does. For null it is about no person. */
  logAbout(people: readonly (number | null)[], taking?: LaneTaking): Promise<LoggedLane[]>;
  /** Begins to deliver; `deliver` waits for the end. */
  begin(changes?: Partial<DeliverLaneDeps>, taken?: TakenLane): LaneDelivery;
  deliver(changes?: Partial<DeliverLaneDeps>, taken?: TakenLane): Promise<LaneOutcome>;
  /** Delivers until the lane answers something else than `more`. */
  deliverAll(changes?: Partial<DeliverLaneDeps>): Promise<LaneOutcome>;
  /** Drains a replay that is due, whosever it is, for a time slice. */
  replay(changes?: Partial<ReplayDeps>): Promise<boolean>;
  /** Changes the webhook as its owner does. */
  change(changes: Partial<WebhookSettings>): ReturnType<typeof updateWebhook>;
  lane(): Promise<LaneReport | undefined>;
  attempts(sequence: number): Promise<AttemptRecord[]>;
}

/** A process that others see all the time. */
export const ALIVE: Presence = {
  processId: 0,
  isShown: true,
  shownSinceMs: 0,
  shown: () => Promise.resolve(),
};

/** Longer than the stalls of a busy machine in one drain: a drain begins no delivery in the last 4 s of a lease. */
export const LEASE_MS = 60_000;
const logger = createLogger('test', 'silent');
let lastEnvironmentId = 0;

export async function createLaneWorld(
  database: Database,
  settings: Partial<WebhookSettings> = {},
): Promise<LaneWorld> {
  const environmentId = ++lastEnvironmentId;
  await insertTestWorkspace(database, environmentId, SIGNING_KEY);
  const { webhookId } = await insertTestWebhook(database, environmentId, {
    endpoint: 'http://receiver.test/hook',
    ...settings,
  });
  const key = { environmentId, webhookId };
  let logged = 0;

  const world: LaneWorld = {
    ...key,
    database,
    key,
    sent: [],
    wakes: [],
    nowMs: 1_800_000_000_000,
    monotonicAheadMs: 0,
    clock: { aheadMs: 0, uncertaintyMs: 1 },
    endings: [],
    behave: () => OK,

    log: (count) => world.logAbout(Array.from({ length: count }, () => null)),

    async logAbout(people, taking) {
      const events = people.map((personId) => ({
        environmentId,
        eventId: `e${++logged}`,
        eventType: 'customer_subscribed' as const,
        objectType: 'customer' as const,
        metric: 'subscribed',
        occurredAtMs: world.nowMs,
        ...(personId !== null && { personId }),
        data: { customer_id: '42' },
      }));
      return database
        .transaction()
        .execute((transaction) => appendDeliveries(transaction, events, taking));
    },

    begin: (changes = {}, taken) => deliverLane({ ...depsOf(world), ...changes }, key, taken),
    deliver: (changes, taken) => world.begin(changes, taken).ended,

    async deliverAll(changes) {
      for (;;) {
        const outcome = await world.deliver(changes);
        if (outcome.outcome !== 'more') return outcome;
      }
    },

    replay: (changes = {}) => replayDeliveries({ ...depsOf(world), database, ...changes }),
    change: (changes) => updateWebhook(database, environmentId, webhookId, changes, world.nowMs),
    lane: () => findLane(database, key),
    attempts: (sequence) => listAttempts(database, key, [sequence]),
  };
  return world;
}

function createPermits(): LanePermits {
  const options = {
    permitsMax: 100,
    slowMax: 100,
    slowAfterMs: 50,
    monotonicNow: () => performance.now(),
    idleTimeMs: () => performance.now(),
  };
  return { deliveries: new FairPermits(options), probes: new FairPermits(options) };
}

/** Statements by the world's clock and schedule. */
export function storeOf(world: LaneWorld, database: Database = world.database): LaneStore {
  return createLaneStore(database, () => world.nowMs, longestWaitMs(POLICY));
}

function depsOf(world: LaneWorld): DeliverLaneDeps {
  const clock = new WorkerClock({
    onMeasured: () => undefined,
    measure: async () => world.clock,
    now: () => world.nowMs,
    monotonicNow: () => performance.now(),
    fail: (error) => void world.endings.push(error),
  });
  return {
    permits: createPermits(),
    inProgress: new LanesInProgress(),
    store: storeOf(world),
    policy: POLICY,
    presence: ALIVE,
    // A time slice longer than any stalls of a busy machine: a test waits between the requests of one drain.
    leases: { timeoutMs: 4_000, leaseMs: LEASE_MS, timeSliceMs: 50_000 },
    async post(request) {
      const { event_id: eventId } = JSON.parse(request.body) as { event_id: string };
      world.sent.push(eventId);
      return world.behave(request, eventId);
    },
    isPlaceWanted: () => true,
    openSecret: (_, encrypted) => encrypted,
    wakeLane: async () => void world.wakes.push('now'),
    wakeLaneAt: async (_, atMs) => void world.wakes.push(atMs),
    now: () => world.nowMs,
    confirmGivingUp: (endedAtMs) => clock.confirmGivingUp(endedAtMs),
    confirmFailure: (endedAtMs) => clock.confirmFailure(endedAtMs),
    monotonicNow: () => performance.now() + world.monotonicAheadMs,
    idleTime: new IdleTime({
      idleMs: () => performance.now(),
      monotonicNow: () => performance.now(),
    }),
    laneCount: () => 1,
    pause: (durationMs) => new Promise((resolve) => setTimeout(resolve, durationMs)),
    random: () => 0.5,
    logger,
  };
}

/** e1, e2, …, both ends included. */
export function eventIds(from: number, through: number): string[] {
  return Array.from({ length: through - from + 1 }, (_, index) => `e${from + index}`);
}

/** e1 was delivered, e2 is the head of a failing lane, e3 to e5 are blocked. */
export async function createFailingLane(database: Database): Promise<LaneWorld> {
  const world = await createLaneWorld(database);
  await world.log(1);
  await world.deliverAll();
  await world.log(4);
  world.behave = () => status(500);
  await world.deliverAll();
  world.behave = () => OK;
  world.sent.length = 0;
  return world;
}

/** A promise, with a function that ends it. */
export function createGate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** The operator skips the head. */
export const skip = ({ database, key, nowMs }: LaneWorld, sequence = 2) =>
  skipHead(database, key, { sequence, note: 'by a test' }, BY_TEST, nowMs);

/** `event origin state attempts` of every delivery, oldest first. */
export const statesOf = async ({ database, key }: LaneWorld): Promise<string[]> =>
  (await listDeliveries(database, key, 100))
    .toReversed()
    .map((row) => `${row.eventId} ${row.origin} ${row.state} ${row.attempts}`);

/** Every request from now on is held open until the gate is, and answered so then. */
export function holdAnswers(world: LaneWorld, answer: HttpOutcome): ReturnType<typeof createGate> {
  const gate = createGate();
  world.behave = async () => {
    await gate.opened;
    return answer;
  };
  return gate;
}

/** Each of these requests is held open until the returned function is called with its event, and answered so then. */
export function holdEach(
  world: LaneWorld,
  held: readonly string[],
  answer = OK,
): (eventId: string) => void {
  const gates = new Map(held.map((eventId) => [eventId, createGate()]));
  world.behave = async (_, eventId) => {
    await gates.get(eventId)?.opened;
    return answer;
  };
  return (eventId) => gates.get(eventId)?.open();
}

/** As if its concurrency limit had grown for a while. */
export async function allowEight({ database, environmentId }: LaneWorld): Promise<void> {
  await sql`update lanes set send_window = 8 where environment_id = ${environmentId}`.execute(
    database,
  );
}

/** As if a lease had passed: the holders know it, and any worker may claim the lane and its replays. */
export async function endLeases(world: LaneWorld): Promise<void> {
  world.monotonicAheadMs += LEASE_MS;
  await endStoredLeases(world);
}

/** The same beside holders that have died. */
export async function endStoredLeases({
  database,
  environmentId,
}: Pick<LaneWorld, 'database' | 'environmentId'>): Promise<void> {
  for (const table of ['lanes', 'webhook_replays']) {
    await sql`
      update ${sql.table(table)} set lease_until = clock_timestamp() - interval '1 second'
       where environment_id = ${environmentId} and lease_until is not null`.execute(database);
  }
}

/** Shows when a drain has learned of a change: `heard` resolves once progress was stored after it. */
export function createHearing() {
  const gate = createGate();
  let isMade = false;
  return {
    heard: gate.opened,
    /** The change is committed. */
    made: (): void => void (isMade = true),
    /** The drain stores its progress by the returned function. */
    watch:
      (keep: LaneStore['keep']): LaneStore['keep'] =>
      async (report) => {
        const isAfterChange = isMade;
        const after = await keep(report);
        if (isAfterChange) gate.open();
        return after;
      },
  };
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Progress of a lane whose first delivery is sent. */
export const PROGRESS = {
  snapshot: {
    state: 'healthy',
    cursor: 1,
    attemptedThrough: 1,
    nextProbeAtMs: null,
    concurrencyLimit: 1,
  },
  endpointVersion: 1,
  isLast: false,
} as const;
