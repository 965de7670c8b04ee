/** Runs sequences side by side in one fleet, waits until all calls are applied, and judges what the API returns. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { countApplied } from '../loss/invariant-checker.ts';
import type { Fleet } from '../loss/fleet-under-test.ts';
import { findUnsettled, whileItMoves } from '../loss/run-seed.ts';
import {
  nameCalls,
  namesIn,
  prefixOf,
  type AnsweredCall,
  type Call,
  type PlannedCall,
} from './call.ts';
import { possibleStates } from './checker.ts';
import { findDifferences, type Difference } from './compare.ts';
import { readPeople } from './read-people.ts';

/** A sequence under names of its own. */
export interface Run {
  readonly seed: number;
  /** Distinguishes runs of one seed in a fleet. */
  readonly run: number;
  /** With placeholders instead of names. */
  readonly calls: readonly PlannedCall[];
}

export interface Judgement extends Run {
  readonly history: readonly AnsweredCall[];
  readonly differences: readonly Difference[];
}

/** Sequences that send at the same time, and people that are read at the same time. */
const SENDING_MAX = 32;
const READING_MAX = 8;
const BASIC = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const PIPELINES = { Authorization: BASIC(`${DEMO.writeKey}:`), 'X-Strict-Mode': '1' };
const TRACK = { Authorization: BASIC(`${DEMO.siteId}:${DEMO.apiKey}`) };

export interface RunOptions {
  /** Faults; awaited before anything is read. */
  readonly whileSending?: (sent: Promise<unknown>) => Promise<void>;
  readonly onJudged?: () => void;
  /** Sends each call when all earlier calls are applied: then only the effects differ, never the order. */
  readonly isApart?: boolean;
}

export async function runSequences(
  fleet: Fleet,
  runs: readonly Run[],
  { whileSending = async () => {}, onJudged = () => {}, isApart = false }: RunOptions = {},
): Promise<readonly Judgement[]> {
  const named = runs.map(({ calls, seed, run }) => nameCalls(calls, seed, run));
  const sending = isApart
    ? sendApart(fleet, named)
    : mapInParallel(named, SENDING_MAX, (calls) =>
        sendCalls(fleet.intakeUrls, calls).catch(String),
      );
  const [histories] = await Promise.all([sending, whileSending(sending)]);
  await settle(fleet);
  return mapInParallel(runs, READING_MAX, async (run, index) => {
    const history = histories[index] as readonly AnsweredCall[] | string;
    const differences =
      typeof history === 'string'
        ? [{ kind: 'call not acknowledged', words: history }]
        : await judge(fleet, run, history);
    onJudged();
    return { ...run, history: typeof history === 'string' ? [] : history, differences };
  });
}

/**
 * Sends a sequence as its clients would: each awaits its answers.
 *
 * @throws Error if an intake does not answer 200: such a call may or may not take effect, so nothing can be judged.
 */
async function sendCalls(
  intakeUrls: readonly [string, string],
  calls: readonly PlannedCall[],
): Promise<readonly AnsweredCall[]> {
  const history: AnsweredCall[] = [];
  // One process sends all calls, so a counter orders them better than a clock.
  let place = 0;
  const run = async (sender: number): Promise<void> => {
    for (const planned of calls) {
      if (planned.sender !== sender) continue;
      const sentAt = ++place;
      await send(intakeUrls[planned.intake], planned.call);
      history.push({ ...planned, sentAt, answeredAt: ++place });
    }
  };
  await Promise.all([...new Set(calls.map(({ sender }) => sender))].map(run));
  return history.toSorted((one, other) => one.sentAt - other.sentAt);
}

/** The sequences side by side, one call of each at a time. */
async function sendApart(
  fleet: Fleet,
  sequences: readonly (readonly PlannedCall[])[],
): Promise<readonly (readonly AnsweredCall[])[]> {
  const lengthMax = Math.max(...sequences.map(({ length }) => length));
  for (let index = 0; index < lengthMax; index++) {
    const next = sequences.map((calls) => calls.slice(index, index + 1));
    await mapInParallel(next, SENDING_MAX, (calls) => sendCalls(fleet.intakeUrls, calls));
    await settle(fleet);
  }
  return sequences.map((calls) =>
    calls.map((planned, index) => ({ ...planned, sentAt: 2 * index, answeredAt: 2 * index + 1 })),
  );
}

async function send(url: string, call: Call): Promise<void> {
  const { method, path, headers } = requestOf(call);
  const body = JSON.stringify(call.body ?? {});
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
  });
  const text = await answer.text();
  if (answer.status !== 200)
    throw new Error(`${method} ${path} was answered ${answer.status}: ${text}; ${body}`);
}

function requestOf(call: Call): { method: string; path: string; headers: Record<string, string> } {
  switch (call.api) {
    case 'pipelines':
      return { method: 'POST', path: `/v1/${call.path}`, headers: PIPELINES };
    case 'v2':
      return { method: 'POST', path: `/api/v2/${call.path}`, headers: TRACK };
    case 'v1': {
      const path = call.path.map(encodeURIComponent).join('/');
      return { method: call.method, path: `/api/v1/${path}`, headers: TRACK };
    }
  }
}

async function judge(
  { apiUrl = '' }: Fleet,
  { seed, run }: Run,
  history: readonly AnsweredCall[],
): Promise<readonly Difference[]> {
  const found = await readPeople(apiUrl, namesIn(history, prefixOf(seed, run)));
  const verdict = possibleStates(history);
  if (verdict.outcome === 'too many')
    return [{ kind: 'not decided', words: 'more states are possible than the bound allows' }];
  return findDifferences(verdict.states, found, history);
}

/** @throws Error if the fleet stops making progress before all calls are applied. */
async function settle(fleet: Fleet): Promise<void> {
  let unsettled: readonly string[] = [];
  await whileItMoves(
    async () => {
      unsettled = await findUnsettled(fleet);
      return unsettled.length === 0;
    },
    async () => String(await countApplied(fleet.database)),
  );
  if (unsettled.length > 0) throw new Error(`the fleet stands still: ${unsettled.join('; ')}`);
}

async function mapInParallel<Item, Result>(
  items: readonly Item[],
  countMax: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const workOff = async (): Promise<void> => {
    for (const [index, item] of waiting) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: countMax }, workOff));
  return results;
}
