/**
 * Months of a lane's life on a virtual clock: a random history of arrivals, outages and crashes
 * drives the rules over a fake transport, and a judge that knows everything that happened checks
 * what was promised. Its expectation of the schedule is written down apart from the rules.
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';
import { addFailure, NEVER_ATTEMPTED, type RetryState } from '@sluice/domain/delivery-schedule';
import {
  LaneRun,
  type LaneDelivery,
  type LanePolicy,
  type LaneSnapshot,
} from '@sluice/domain/lane';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const DAY_MS = 24 * HOUR_MS;
const LIFE_MS = 90 * DAY_MS;
/** Every delivery of an endpoint that stays away takes a week, so the end of what is left must be in sight. */
const RECOVERED_AT_MS = 60 * DAY_MS;

const policy: LanePolicy = {
  listedFailureWaitMs: HOUR_MS,
  backoffBaseMs: 10 * SECOND_MS,
  backoffCapMs: HOUR_MS,
  giveUpAfterMs: 7 * DAY_MS,
  windowMax: 6,
};

interface Answer {
  readonly failure: FailureClass | null;
  readonly status: number | null;
  readonly isListed: boolean;
  readonly latencyMs: number;
}

interface Attempt extends Answer {
  readonly sequence: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Waits after a failure are between half and the whole of a step. */
  readonly chance: number;
  /** How many crashes there had been. */
  readonly era: number;
  verdict?: 'delivered' | 'retrying' | 'abandoned';
  isKept: boolean;
}

const OK: Answer = { failure: null, status: 204, isListed: false, latencyMs: 20 };
const FAILURES: readonly Answer[] = [
  { failure: 'status', status: 500, isListed: true, latencyMs: 30 },
  { failure: 'status', status: 404, isListed: true, latencyMs: 10 },
  { failure: 'connection_refused', status: null, isListed: true, latencyMs: 1 },
  { failure: 'tls_verification', status: null, isListed: true, latencyMs: 15 },
  { failure: 'status', status: 503, isListed: false, latencyMs: 40 },
  { failure: 'status', status: 301, isListed: false, latencyMs: 40 },
  { failure: 'timeout', status: null, isListed: false, latencyMs: 4 * SECOND_MS },
  { failure: 'name_not_resolved', status: null, isListed: false, latencyMs: 5 },
];

/** Small, fast and the same everywhere (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Things that happen at a time, in order. */
class Agenda {
  #entries: { atMs: number; order: number; run: () => void }[] = [];
  #order = 0;
  nowMs = 0;

  at(atMs: number, run: () => void): void {
    const entry = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    let index = this.#entries.length;
    while (index > 0 && (this.#entries[index - 1]?.atMs ?? 0) > entry.atMs) index--;
    this.#entries.splice(index, 0, entry);
  }

  runAll(): void {
    for (let entry = this.#entries.shift(); entry; entry = this.#entries.shift()) {
      this.nowMs = entry.atMs;
      entry.run();
    }
  }
}

/** In the order in which it happened, which times alone do not tell. */
interface Happening {
  readonly kind: 'started' | 'ended';
  readonly attempt: Attempt;
}

interface Life {
  readonly attempts: readonly Attempt[];
  readonly happenings: readonly Happening[];
  readonly logged: number;
  readonly crashes: number;
  readonly finalCursor: number;
}

/** Lives one life; everything in it follows from the seed. */
function live(seed: number): Life {
  const random = createRandom(seed);
  const agenda = new Agenda();
  const attempts: Attempt[] = [];
  const bySequence = new Map<number, Attempt[]>();
  let unkept: Attempt[] = [];
  const happenings: Happening[] = [];
  let crashesLeft = Math.floor(random() * 12);
  let logged = 0;
  let era = 0;
  let run: LaneRun<LaneDelivery> | undefined;
  let kept: LaneSnapshot = {
    state: 'healthy',
    cursor: 0,
    attemptedThrough: 0,
    nextProbeAtMs: null,
    window: 1,
  };
  const outages = makeOutages(random);

  const answer = (): Answer => {
    if (agenda.nowMs >= RECOVERED_AT_MS) return OK;
    const outage = outages.find(
      ({ fromMs, toMs }) => agenda.nowMs >= fromMs && agenda.nowMs < toMs,
    );
    if (outage && random() < outage.density)
      return FAILURES[Math.floor(random() * outage.variety)] as Answer;
    return { ...OK, latencyMs: 1 + Math.floor(random() * random() * 3_000) };
  };

  const keep = (): void => {
    if (!run) return;
    kept = run.snapshot();
    for (const attempt of unkept) attempt.isKept = true;
    unkept = [];
  };

  const work = (): void => {
    run ??= new LaneRun<LaneDelivery>(kept, policy);
    run.load(readLog(run.loadedThrough, logged, bySequence));
    for (let next = run.start(agenda.nowMs); next; next = run.start(agenda.nowMs))
      send(next.sequence);
    const { nextProbeAtMs } = run.snapshot();
    if (run.inFlight > 0) return;
    keep();
    if (nextProbeAtMs !== null) agenda.at(nextProbeAtMs, work);
  };

  const send = (sequence: number): void => {
    const given = answer();
    const startedAtMs = agenda.nowMs;
    const attempt: Attempt = {
      ...given,
      sequence,
      startedAtMs,
      endedAtMs: startedAtMs + given.latencyMs,
      chance: random(),
      era,
      isKept: false,
    };
    attempts.push(attempt);
    bySequence.set(sequence, [...(bySequence.get(sequence) ?? []), attempt]);
    happenings.push({ kind: 'started', attempt });
    if (random() < 0.01 && crashesLeft-- > 0)
      agenda.at(startedAtMs + random() * 2 * given.latencyMs, crash);
    agenda.at(attempt.endedAtMs, () => {
      if (attempt.era !== era || !run) return;
      if (given.failure === null) {
        run.succeed(sequence);
        attempt.verdict = 'delivered';
      } else {
        const failed = { failure: given.failure, status: given.status, startedAtMs };
        attempt.verdict = run.fail(sequence, failed, agenda.nowMs, attempt.chance);
      }
      happenings.push({ kind: 'ended', attempt });
      unkept.push(attempt);
      if (random() < 0.7) keep();
      work();
    });
  };

  const crash = (): void => {
    era++;
    unkept = [];
    run = undefined;
    agenda.at(agenda.nowMs + 15 * SECOND_MS, work);
  };

  for (let atMs = 0; atMs < RECOVERED_AT_MS; atMs += random() * random() * DAY_MS) {
    const burst = 1 + Math.floor(random() * random() * 12);
    agenda.at(atMs, () => {
      logged += burst;
      work();
    });
  }
  agenda.at(LIFE_MS, work);
  agenda.runAll();
  return {
    attempts,
    happenings,
    logged,
    crashes: era,
    finalCursor: run ? (run as LaneRun<LaneDelivery>).snapshot().cursor : kept.cursor,
  };
}

/** As the database gives it: the log, with what the kept attempts came to. */
function readLog(
  after: number,
  through: number,
  attempts: ReadonlyMap<number, readonly Attempt[]>,
): LaneDelivery[] {
  const page: LaneDelivery[] = [];
  for (let sequence = after + 1; sequence <= through; sequence++) {
    let retry: RetryState = NEVER_ATTEMPTED;
    let isFinished = false;
    for (const attempt of attempts.get(sequence) ?? []) {
      if (!attempt.isKept) continue;
      isFinished = attempt.verdict !== 'retrying';
      if (attempt.failure !== null)
        retry = addFailure(retry, { ...attempt, failure: attempt.failure });
    }
    page.push({ sequence, retry, isFinished });
  }
  return page;
}

interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
  /** Share of the requests that fail. */
  readonly density: number;
  readonly variety: number;
}

function makeOutages(random: () => number): Outage[] {
  return Array.from({ length: Math.floor(random() * 8) }, () => {
    const fromMs = random() * RECOVERED_AT_MS;
    const lengthMs = random() < 0.3 ? random() * 12 * DAY_MS : random() * 6 * HOUR_MS;
    return {
      fromMs,
      toMs: fromMs + lengthMs,
      density: random() < 0.5 ? 1 : random(),
      variety: 1 + Math.floor(random() * FAILURES.length),
    };
  });
}

/** The schedule as the documentation tells it, in words of its own. */
function expectedNextMs(failed: readonly Attempt[]): number {
  const latest = failed.at(-1) as Attempt;
  const firstListed = failed.findIndex((attempt) => attempt.isListed);
  const giveUpAtMs = (failed[0] as Attempt).startedAtMs + policy.giveUpAfterMs;
  if (firstListed === failed.length - 1) return Math.min(latest.endedAtMs + HOUR_MS, giveUpAtMs);
  const steps = failed.length - (firstListed >= 0 ? 1 : 0);
  const fullMs = Math.min(10 * SECOND_MS * 2 ** (steps - 1), HOUR_MS);
  return Math.min(latest.endedAtMs + Math.round(fullMs * (0.5 + latest.chance / 2)), giveUpAtMs);
}

function judge({ attempts, happenings, logged, crashes, finalCursor }: Life): void {
  const bySequence = Map.groupBy(attempts, (attempt) => attempt.sequence);

  // None is lost.
  expect(finalCursor).toBe(logged);
  for (let sequence = 1; sequence <= logged; sequence++) {
    const own = bySequence.get(sequence) ?? [];
    expect(
      own.some((attempt) => attempt.verdict === 'delivered' || attempt.verdict === 'abandoned'),
    ).toBe(true);
  }

  // None overtakes what is held back: from a failure until the earliest failed is finished, that one
  // alone is tried, one attempt at a time. A crash takes back what was not kept.
  let era = 0;
  let head: number | undefined;
  let keptHead: number | undefined;
  let inFlight = 0;
  /** The attempts after which their delivery was alone in being tried. */
  const heads = new Set<Attempt>();
  const latest = new Map<number, Attempt>();
  for (const { kind, attempt } of happenings) {
    if (attempt.era > era) {
      era = attempt.era;
      head = keptHead;
      inFlight = 0;
    }
    const { sequence, verdict } = attempt;
    if (kind === 'started') {
      if (head !== undefined) {
        // Earlier than the earliest known to have failed: one whose ending the crash took.
        expect(sequence).toBeLessThanOrEqual(head);
        expect(inFlight).toBe(0);
        head = sequence;
      }
      inFlight++;
    } else {
      inFlight--;
      if (verdict === 'retrying') head = Math.min(head ?? sequence, sequence);
      else if (head === sequence) head = undefined;
      if (attempt.isKept) keptHead = head;
      latest.set(sequence, attempt);
      const headAttempt = head === undefined ? undefined : latest.get(head);
      if (inFlight === 0 && headAttempt?.era === era) heads.add(headAttempt);
    }
  }
  expect(crashes).toBeGreaterThanOrEqual(era);

  for (const own of bySequence.values()) {
    own.forEach((attempt, index) => {
      const before = own.slice(0, index);
      // None is sent again after it was delivered or abandoned, unless a crash came between.
      const finished = before.find((earlier) => earlier.verdict && earlier.verdict !== 'retrying');
      if (finished) expect(finished.era).toBeLessThan(attempt.era);
      // Nor is anything that was kept, crash or not.
      expect(before.some((earlier) => earlier.isKept && earlier.verdict !== 'retrying')).toBe(
        false,
      );

      // What the rules knew when it failed: nothing of what a crash took.
      const known = before.filter(
        (earlier) =>
          earlier.verdict === 'retrying' && (earlier.isKept || earlier.era === attempt.era),
      );
      const firstAtMs = (known[0] ?? attempt).startedAtMs;
      if (attempt.verdict === 'abandoned')
        expect(attempt.endedAtMs).toBeGreaterThanOrEqual(firstAtMs + 7 * DAY_MS);
      if (attempt.verdict === 'retrying')
        expect(attempt.endedAtMs).toBeLessThan(firstAtMs + 7 * DAY_MS);

      // The schedule of the head is exact.
      const next = own[index + 1];
      if (heads.has(attempt) && next?.era === attempt.era) {
        expect(next.startedAtMs).toBe(expectedNextMs([...known, attempt]));
      }
    });
  }
}

test('over months of outages and crashes: none lost, none overtakes, the schedule exact, given up at seven days', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0 }), (seed) => judge(live(seed))),
    { numRuns: Number(process.env['LANE_SIMULATION_RUNS'] ?? 150) },
  );
});

test('the histories have what the promises are about', () => {
  const lives = Array.from({ length: 40 }, (_, seed) => live(seed));
  const attempts = lives.flatMap((life) => life.attempts);
  expect(attempts.filter((attempt) => attempt.verdict === 'abandoned').length).toBeGreaterThan(5);
  expect(attempts.filter((attempt) => attempt.verdict === 'retrying').length).toBeGreaterThan(
    1_000,
  );
  expect(attempts.filter((attempt) => attempt.verdict === undefined).length).toBeGreaterThan(3);
  expect(lives.reduce((sum, life) => sum + life.crashes, 0)).toBeGreaterThan(50);
});
