/**
 * A lane's life on a virtual clock: a random history of arrivals, outages and crashes drives the
 * rules over a fake transport. Everything in it follows from a seed.
 */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import {
  addFailure,
  NEVER_ATTEMPTED,
  type RetryState,
} from '@sluice/domain/delivery/delivery-schedule';
import {
  LaneRun,
  type LaneDelivery,
  type LanePolicy,
  type LaneSnapshot,
} from '@sluice/domain/delivery/lane';
import { seededRandom, type Random } from '@sluice/domain/values/seeded-random';

export const SECOND_MS = 1_000;
export const HOUR_MS = 3_600 * SECOND_MS;
export const DAY_MS = 24 * HOUR_MS;
const LIFE_MS = 90 * DAY_MS;
/** Every delivery of an endpoint that stays away takes a week, so the end of the rest must be in sight. */
const RECOVERED_AT_MS = 60 * DAY_MS;

export const policy: LanePolicy = {
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

export interface Attempt extends Answer {
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

/** In their order, which times alone do not show. */
interface Happening {
  readonly kind: 'started' | 'ended';
  readonly attempt: Attempt;
}

export interface Life {
  readonly attempts: readonly Attempt[];
  readonly happenings: readonly Happening[];
  /** Whom each delivery is about, by its sequence from 1. */
  readonly people: readonly (number | null)[];
  readonly logged: number;
  readonly crashes: number;
  readonly finalCursor: number;
}

/** Lives one life; everything in it follows from the seed. */
export function live(seed: number): Life {
  const random = seededRandom(seed);
  const agenda = new Agenda();
  const attempts: Attempt[] = [];
  const bySequence = new Map<number, Attempt[]>();
  let unkept: Attempt[] = [];
  const happenings: Happening[] = [];
  const people: (number | null)[] = [];
  // From two people, who always stand in line, to forty, who hardly ever do. Chances of their own, so that the outages stay.
  const chance = seededRandom(seed ^ 0x5eed);
  const peopleCount = 2 + Math.floor(chance() * chance() * 40);
  let crashesLeft = Math.floor(random() * 12);
  let logged = 0;
  let era = 0;
  let run: LaneRun<LaneDelivery> | undefined;
  let kept: LaneSnapshot = {
    state: 'healthy',
    cursor: 0,
    attemptedThrough: 0,
    nextProbeAtMs: null,
    concurrencyLimit: 1,
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
    run.load(readLog(run.loadedThrough, people, bySequence));
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
      while (people.length < logged)
        people.push(chance() < 0.1 ? null : Math.floor(chance() * peopleCount));
      work();
    });
  }
  agenda.at(LIFE_MS, work);
  agenda.runAll();
  return {
    attempts,
    happenings,
    people,
    logged,
    crashes: era,
    finalCursor: run ? run.snapshot().cursor : kept.cursor,
  };
}

/** As the database gives it: the log, with the results of the kept attempts. */
function readLog(
  after: number,
  people: readonly (number | null)[],
  attempts: ReadonlyMap<number, readonly Attempt[]>,
): LaneDelivery[] {
  const page: LaneDelivery[] = [];
  for (let sequence = after + 1; sequence <= people.length; sequence++) {
    let retry: RetryState = NEVER_ATTEMPTED;
    let isFinished = false;
    for (const attempt of attempts.get(sequence) ?? []) {
      if (!attempt.isKept) continue;
      isFinished = attempt.verdict !== 'retrying';
      if (attempt.failure !== null)
        retry = addFailure(retry, { ...attempt, failure: attempt.failure });
    }
    const personId = people[sequence - 1] ?? null;
    page.push({ sequence, retry, isFinished, isTriedOnce: false, personId });
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

function makeOutages(random: Random): Outage[] {
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
