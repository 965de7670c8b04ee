/**
 * Months of lanes' lives, and a judge of the promises.
 *
 * The judge knows all happenings. Its expectation of the schedule is written down apart from the rules.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  DAY_MS,
  HOUR_MS,
  live,
  policy,
  SECOND_MS,
  type Attempt,
  type Life,
} from '../support/lane-life.ts';

/** The schedule of the documentation, in words of its own. */
function expectedNextMs(failed: readonly Attempt[]): number {
  const latest = failed.at(-1) as Attempt;
  const giveUpAtMs = (failed[0] as Attempt).startedAtMs + policy.giveUpAfterMs;
  const firstListed = failed.findIndex((attempt) => attempt.isListed);
  if (waitsAnHour(failed)) return Math.min(latest.endedAtMs + HOUR_MS, giveUpAtMs);
  const steps = failed.length - (firstListed >= 0 ? 1 : 0);
  const fullMs = Math.min(10 * SECOND_MS * 2 ** (steps - 1), HOUR_MS);
  return Math.min(latest.endedAtMs + Math.round(fullMs * (0.5 + latest.chance / 2)), giveUpAtMs);
}

const waitsAnHour = (failed: readonly Attempt[]): boolean =>
  failed.findIndex((attempt) => attempt.isListed) === failed.length - 1;

/** A delivery's failures that the rules knew when this attempt failed, without the ones that a crash took. */
const knownWith = (own: readonly Attempt[], attempt: Attempt): readonly Attempt[] => [
  ...own
    .slice(0, own.indexOf(attempt))
    .filter(
      (earlier) =>
        earlier.verdict === 'retrying' && (earlier.isKept || earlier.era === attempt.era),
    ),
  attempt,
];

function judge(life: Life): void {
  const { attempts, happenings, logged, crashes, finalCursor } = life;
  const bySequence = Map.groupBy(attempts, (attempt) => attempt.sequence);
  judgePeople(life, bySequence);

  // Every delivery ends.
  expect(finalCursor).toBe(logged);
  for (let sequence = 1; sequence <= logged; sequence++) {
    const own = bySequence.get(sequence) ?? [];
    expect(
      own.some((attempt) => attempt.verdict === 'delivered' || attempt.verdict === 'abandoned'),
    ).toBe(true);
  }

  // Blocked deliveries keep their order: from a failure until the earliest failed is finished, that one alone is tried,
  // one attempt at a time. A crash takes back results that were not kept.
  let era = 0;
  let head: number | undefined;
  let keptHead: number | undefined;
  /** End of the hour of a listed failure, of any delivery. */
  let listedUntilMs = 0;
  let inFlight = 0;
  /** The attempts after which their delivery was alone in being tried, and until when it had to wait for others. */
  const heads = new Map<Attempt, number>();
  const latest = new Map<number, Attempt>();
  for (const { kind, attempt } of happenings) {
    if (attempt.era > era) {
      era = attempt.era;
      head = keptHead;
      listedUntilMs = 0;
      inFlight = 0;
    }
    const { sequence, verdict } = attempt;
    if (kind === 'started') {
      if (head !== undefined) {
        // Earlier than the earliest known to have failed: one whose ending the crash took.
        expect(sequence).toBeLessThanOrEqual(head);
        expect(inFlight).toBe(0);
        // An endpoint gets no request within the hour after it gave a listed answer.
        expect(attempt.startedAtMs).toBeGreaterThanOrEqual(listedUntilMs);
        head = sequence;
      }
      inFlight++;
    } else {
      inFlight--;
      if (verdict === 'retrying') {
        head = Math.min(head ?? sequence, sequence);
        const failed = knownWith(bySequence.get(sequence) ?? [], attempt);
        if (waitsAnHour(failed)) listedUntilMs = Math.max(listedUntilMs, expectedNextMs(failed));
      } else if (head === sequence) head = undefined;
      if (attempt.isKept) keptHead = head;
      latest.set(sequence, attempt);
      const headAttempt = head === undefined ? undefined : latest.get(head);
      if (inFlight === 0 && headAttempt?.era === era) heads.set(headAttempt, listedUntilMs);
    }
  }
  expect(crashes).toBeGreaterThanOrEqual(era);

  for (const own of bySequence.values()) {
    own.forEach((attempt, index) => {
      const before = own.slice(0, index);
      // A delivery is not sent again after it was delivered or abandoned, unless a crash came between.
      const finished = before.find((earlier) => earlier.verdict && earlier.verdict !== 'retrying');
      if (finished) expect(finished.era).toBeLessThan(attempt.era);
      // Nor is anything that was kept, crash or not.
      expect(before.some((earlier) => earlier.isKept && earlier.verdict !== 'retrying')).toBe(
        false,
      );

      const failed = knownWith(own, attempt);
      const firstAtMs = (failed[0] as Attempt).startedAtMs;
      if (attempt.verdict === 'abandoned')
        expect(attempt.endedAtMs).toBeGreaterThanOrEqual(firstAtMs + 7 * DAY_MS);
      if (attempt.verdict === 'retrying')
        expect(attempt.endedAtMs).toBeLessThan(firstAtMs + 7 * DAY_MS);

      // The schedule of the head is exact.
      const next = own[index + 1];
      const untilMs = heads.get(attempt);
      if (untilMs !== undefined && next?.era === attempt.era) {
        expect(next.startedAtMs).toBe(Math.max(expectedNextMs(failed), untilMs));
      }
    });
  }
}

/**
 * Of each person at most one is in flight, and it is sent after earlier ones about the same person are delivered or
 * abandoned. Deliveries that a crash took back count as not sent.
 */
function judgePeople(
  { happenings, people }: Life,
  bySequence: ReadonlyMap<number, readonly Attempt[]>,
): void {
  let era = 0;
  const inFlight = new Set<number>();
  for (const { kind, attempt } of happenings) {
    if (attempt.era > era) {
      era = attempt.era;
      inFlight.clear();
    }
    const personId = people[attempt.sequence - 1] ?? null;
    if (personId === null) continue;
    if (kind === 'ended') {
      inFlight.delete(personId);
      continue;
    }
    expect(inFlight.has(personId)).toBe(false);
    inFlight.add(personId);
    for (let earlier = attempt.sequence - 1; earlier > 0; earlier--) {
      if (people[earlier - 1] !== personId) continue;
      const isFinished = (bySequence.get(earlier) ?? []).some(
        ({ verdict, isKept, era: itsEra, endedAtMs }) =>
          verdict !== undefined &&
          verdict !== 'retrying' &&
          (isKept || itsEra === era) &&
          endedAtMs <= attempt.startedAtMs,
      );
      expect(isFinished).toBe(true);
      break;
    }
  }
}

const seed = Number(process.env['SLUICE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env['LANE_SIMULATION_RUNS'] ?? 250);

test(
  `in ${runs} histories of outages and crashes (seed ${seed}) every delivery is kept, in order, on schedule, and given up at seven days`,
  () => {
    fc.assert(
      fc.property(fc.integer({ min: 0 }), (lifeSeed) => judge(live(lifeSeed))),
      { numRuns: runs, seed },
    );
  },
  20_000 + runs * 200,
);

test('the histories contain crashes, overtakings, and deliveries that are retried, cut and given up', () => {
  const lives = Array.from({ length: 40 }, (_, number) => live(number));
  const attempts = lives.flatMap((life) => life.attempts);
  expect(attempts.filter((attempt) => attempt.verdict === 'abandoned').length).toBeGreaterThan(5);
  expect(attempts.filter((attempt) => attempt.verdict === 'retrying').length).toBeGreaterThan(
    1_000,
  );
  expect(attempts.filter((attempt) => attempt.verdict === undefined).length).toBeGreaterThan(3);
  expect(lives.reduce((sum, life) => sum + life.crashes, 0)).toBeGreaterThan(50);
  // Some waited for an earlier one about the same person, and others passed them.
  const overtakings = lives.flatMap(({ attempts: own }) =>
    own.filter(({ sequence }, place) => sequence < (own[place - 1]?.sequence ?? 0)),
  );
  expect(overtakings.length).toBeGreaterThan(100);
});
