/**
 * Runs sequences side by side and judges the API's answers.
 *
 * They run in one fleet. The answers are read after all calls are applied.
 */
import { lastApplied } from '../loss/invariant-checker.ts';
import type { Fleet } from '../loss/fleet-under-test.ts';
import { findUnsettled, whileItMoves } from '../loss/run-seed.ts';
import { nameCalls, namesIn, prefixOf, type AnsweredCall, type PlannedCall } from './model/call.ts';
import { possibleStates } from './checker.ts';
import { findDifferences, type Difference } from './compare.ts';
import { learnSvcIds, type Learned } from './learn-svc-ids.ts';
import { readPeople } from './read-people.ts';
import { sendSequence, type Client } from './send-calls.ts';

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

/** Sequences that send at the same time, and sequences whose people are read at the same time. */
const SENDING_MAX = 48;
const READING_MAX = 12;

export interface RunOptions {
  /** Faults; awaited before anything is read. */
  readonly whileSending?: (sent: Promise<unknown>) => Promise<void>;
  readonly onSent?: () => void;
  /** All calls are applied. */
  readonly onApplied?: () => void;
  readonly onJudged?: () => void;
  /** Sends each call when all earlier calls are applied: then only the effects differ, never the order. */
  readonly isApart?: boolean;
}

export async function runSequences(
  fleet: Fleet,
  runs: readonly Run[],
  {
    whileSending = async () => {},
    onSent = () => {},
    onApplied = () => {},
    onJudged = () => {},
    isApart = false,
  }: RunOptions = {},
): Promise<readonly Judgement[]> {
  // The longest first: else one of 200 calls is left at the end, and the fleet idles.
  const inOrder = runs.toSorted((one, other) => other.calls.length - one.calls.length);
  const clients = inOrder.map((run) => clientOf(fleet, run));
  const learned = await mapInParallel(inOrder, SENDING_MAX, ({ calls, seed, run }, index) =>
    learnSvcIds(clients[index] as Client, nameCalls(calls, seed, run), prefixOf(seed, run)),
  );
  const named = learned.map(({ calls }) => calls);
  const sending = isApart
    ? sendApart(fleet, clients, named)
    : mapInParallel(clients, SENDING_MAX, (client, index) =>
        sendSequence(client, named[index] ?? []).catch(String),
      );
  const [histories] = await Promise.all([sending, whileSending(sending)]);
  onSent();
  await settle(fleet);
  onApplied();
  return mapInParallel(inOrder, READING_MAX, async (run, index) => {
    const history = histories[index] as readonly AnsweredCall[] | string;
    const { calls, history: before } = learned[index] as Learned;
    const differences =
      typeof history === 'string'
        ? [{ kind: 'call refused', words: history }]
        : await judge(
            fleet,
            clients[index] as Client,
            namesIn([...before, ...calls], prefixOf(run.seed, run.run)),
            [...before, ...history],
          );
    onJudged();
    return {
      ...run,
      history: typeof history === 'string' ? [] : [...before, ...history],
      differences,
    };
  });
}

/** A sequence has a workspace; the seeds of a round take all of them in turn. */
function clientOf({ intakeUrls, apiUrl = '', workspaces }: Fleet, { seed, run }: Run): Client {
  const workspace = workspaces[(seed + run) % workspaces.length] ?? workspaces[0];
  return { intakeUrls, apiUrl, workspace };
}

/** The sequences side by side, one call of each at a time. */
async function sendApart(
  fleet: Fleet,
  clients: readonly Client[],
  sequences: readonly (readonly PlannedCall[])[],
): Promise<readonly (readonly AnsweredCall[])[]> {
  const lengthMax = Math.max(...sequences.map(({ length }) => length));
  const histories = sequences.map((): AnsweredCall[] => []);
  for (let index = 0; index < lengthMax; index++) {
    const next = sequences.map((calls) => calls.slice(index, index + 1));
    const sent = await mapInParallel(next, SENDING_MAX, (calls, place) =>
      sendSequence(clients[place] as Client, calls),
    );
    for (const [place, effects] of sent.entries())
      for (const effect of effects)
        histories[place]?.push({ ...effect, sentAt: 2 * index, answeredAt: 2 * index + 1 });
    await settle(fleet);
  }
  return histories;
}

async function judge(
  fleet: Fleet,
  client: Client,
  names: readonly string[],
  history: readonly AnsweredCall[],
): Promise<readonly Difference[]> {
  const found = await readPeople(fleet.database, client, names);
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
    async () => String(await lastApplied(fleet.database)),
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
