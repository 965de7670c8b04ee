/** The lease of an intake: the reports to the broker before a call is answered from the disk, and their times. */
import { createLogger } from '@sluice/platform/process/logger';
import type { IntakeReport, Standing } from '@sluice/platform/queue/staged-flushes';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { IntakeLease } from '../../src/commit/intake-lease.ts';

/** Of which 0.8 are the lease. */
const DEADLINE_MS = 1_000;
const LEASE_MS = 800;
/** The broker's clock is so far ahead of the monotonic one. */
const AHEAD_MS = 1_000_000;

let nowMs: number;
let reports: IntakeReport[];
let answer: (report: IntakeReport) => Promise<Standing>;
let renew: () => Promise<boolean>;
let readClock: () => Promise<number>;
let firstWrittenAtMs: number | undefined;
/** Waits that have not ended, with their length. */
let waits: { durationMs: number; end: () => void }[];
let lease: IntakeLease;

const standing = (more: Partial<Standing> = {}): Standing => ({
  nowMs: nowMs + AHEAD_MS,
  wasKnown: true,
  stagedCount: 0,
  isMovable: false,
  isClear: false,
  ...more,
});
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

beforeEach(async () => {
  nowMs = 5_000;
  reports = [];
  waits = [];
  firstWrittenAtMs = undefined;
  answer = () => Promise.resolve(standing());
  renew = () => Promise.resolve(false);
  readClock = () => Promise.resolve(nowMs + AHEAD_MS);
  lease = new IntakeLease({
    stage: {
      report(report) {
        reports.push(report);
        return answer(report);
      },
      renew: () => renew(),
      readClock: () => readClock(),
      leave: () => Promise.resolve(),
    },
    moveStaged: () => Promise.resolve(0),
    diskBuffer: {
      id: 'one',
      formerIds: [],
      forgetFormerIds: () => undefined,
      get isEmpty() {
        return firstWrittenAtMs === undefined;
      },
      firstWrittenAtMs: () => firstWrittenAtMs,
    },
    deadlineMs: DEADLINE_MS,
    monotonicNow: () => nowMs,
    now: () => 77,
    pause: (durationMs) =>
      new Promise((resolve) => waits.push({ durationMs, end: () => resolve() })),
    logger: createLogger('test', 'silent'),
  });
});
afterEach(() => lease.stop());

/** With the first of the reports that it makes by itself. */
async function start(): Promise<void> {
  await lease.start();
  await settle();
}

/** Whether a flush may be kept now. */
function keeping() {
  const state = { isAllowed: false };
  void lease.beforeKeeping().then(() => (state.isAllowed = true));
  return state;
}

test('a flush is kept as soon as the broker knows of it', async () => {
  await start();
  nowMs += 100;
  const state = keeping();
  await settle();
  expect(state.isAllowed).toBe(true);
  expect(reports.at(-1)).toMatchObject({ intakeId: 'one' });
  expect(reports.at(-1)?.oldestMs).toBeCloseTo(nowMs + AHEAD_MS, 1);
});

test.each([
  ['refuses', () => Promise.reject(new Error('away'))],
  ['stays silent', () => new Promise<Standing>(() => undefined)],
])('while the broker %s, a flush is kept when the lease has ended', async (_, away) => {
  await start();
  nowMs += 100;
  answer = away;
  const state = keeping();
  await settle();
  expect(state.isAllowed).toBe(false);
  expect(waits.at(-1)?.durationMs).toBe(LEASE_MS - 100);
  waits.at(-1)?.end();
  await settle();
  expect(state.isAllowed).toBe(true);
});

test('once the lease has ended, a flush is kept at once', async () => {
  await start();
  nowMs += LEASE_MS;
  answer = () => new Promise(() => undefined);
  const state = keeping();
  await settle();
  expect(state.isAllowed).toBe(true);
});

test('the lease counts from the sending, by the least that the broker’s clock can show', async () => {
  answer = () => {
    // The answer takes 30 ms, and the broker's clock is read at some time in between.
    nowMs += 30;
    return Promise.resolve(standing({ nowMs: nowMs + AHEAD_MS - 10 }));
  };
  await start();
  const sentAtMs = nowMs;
  // A renewal may come in between, and must show no more.
  answer = () => Promise.resolve(standing({ nowMs: nowMs + AHEAD_MS - 10 }));
  keeping();
  await settle();
  expect(reports.at(-1)?.leaseEndMs).toBe(sentAtMs + AHEAD_MS - 10 + LEASE_MS);
});

test('a renewal without an answer counts too, because the broker may have it', async () => {
  let renewals = 0;
  answer = () => Promise.resolve(standing({ isClear: true }));
  renew = () => (++renewals === 1 ? Promise.resolve(true) : new Promise(() => undefined));
  await start();
  nowMs += 100;
  await vi.waitUntil(() => renewals > 1, 30_000);
  answer = () => Promise.reject(new Error('away'));
  keeping();
  await settle();
  expect(waits.at(-1)?.durationMs).toBe(LEASE_MS);
});

test('reports are sent one after another, so a later report has the later state', async () => {
  await start();
  let end: (standing: Standing) => void = () => undefined;
  answer = () => new Promise((resolve) => (end = resolve));
  keeping();
  keeping();
  await settle();
  const count = reports.length;
  end(standing());
  await settle();
  expect(reports.length).toBe(count + 1);
});

test('a time is the broker’s, and a flush is answered when it has passed; before any answer, it is the machine’s', async () => {
  expect(lease.brokerNow()).toBe(77);
  await lease.untilPassed();
  answer = () => {
    nowMs += 10;
    return Promise.resolve(standing());
  };
  renew = () => Promise.reject(new Error('away'));
  readClock = () => Promise.reject(new Error('away'));
  await start();
  expect(Math.abs(lease.brokerNow() - nowMs - AHEAD_MS)).toBeLessThanOrEqual(10);
  const passed = lease.untilPassed();
  // The uncertainty of a round trip of 10 ms, twice.
  const wait = waits.at(-1);
  expect(wait?.durationMs).toBeGreaterThanOrEqual(10);
  wait?.end();
  await passed;
});

test('a flush that the broker gave up, or never knew, is late until the disk is empty', async () => {
  await start();
  expect(lease.isLate).toBe(false);
  firstWrittenAtMs = 1;
  answer = () => Promise.resolve(standing({ wasKnown: false }));
  keeping();
  await settle();
  expect(lease.isLate).toBe(true);
  answer = () => Promise.resolve(standing());
  keeping();
  await settle();
  expect(lease.isLate).toBe(true);
  lease.kept();
  firstWrittenAtMs = undefined;
  await lease.stop();
  await start();
  expect(lease.isLate).toBe(false);
});
