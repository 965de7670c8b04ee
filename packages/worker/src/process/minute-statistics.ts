/**
 * Counts of applied operations and sent deliveries by minute, until written.
 *
 * They are for the charts of a workspace's owner, and add no statement to a commit batch or a drain. After a kill the
 * last ten seconds are missing in the charts, and nowhere else.
 *
 * Counted after the commit, by the clock of Postgres; written by `database/src/maintenance/minute-statistics.ts`.
 */
import {
  ALL_NAMES,
  ALL_WEBHOOKS,
  type DeliveryMinute,
  type EventMinute,
} from '@sluice/database/maintenance/minute-statistics';
import { LATENCY_CLASS_COUNT, latencyClassOf } from '@sluice/domain/delivery/latency-counts';
import { isError } from '@sluice/domain/operations/issue';
import { IMPORT_SOURCE, type Operation } from '@sluice/domain/operations/operation';
import { toStorableText } from '@sluice/domain/values/storable-text';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';

const MINUTE_MS = 60_000;
/** Of a workspace in a minute; further names count among all. A client that invents names must not fill a table. */
const NAME_COUNT_MAX = 50;
const NAME_LENGTH_MAX = 200;

interface EventCounts {
  accepted: number;
  refused: number;
}

interface DeliveryCounts {
  delivered: number;
  failed: number;
  readonly latencyCounts: number[];
}

interface WorkspaceMinute {
  /** In `byName` too. */
  readonly all: EventCounts;
  readonly byName: Map<string, EventCounts>;
  readonly byWebhook: Map<number, DeliveryCounts>;
  hasNew: boolean;
}

/** The stored part of an attempt. */
export interface CountedAttempt {
  readonly failure: string | null;
  /** Null: no answer came. */
  readonly status: number | null;
  readonly durationMs: number;
}

export type WriteMinutes = (
  events: readonly EventMinute[],
  deliveries: readonly DeliveryMinute[],
) => Promise<void>;

export class MinuteStatistics {
  readonly #now: () => number;
  /** By the start of the minute, then by workspace. */
  readonly #minutes = new Map<number, Map<number, WorkspaceMinute>>();

  /** @param now - Unix milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts the operations of a transaction that is committed. */
  countOperations(operations: readonly Operation[]): void {
    const minute = this.#minuteNow();
    let environmentId: number | undefined;
    let workspace: WorkspaceMinute | undefined;
    for (const operation of operations) {
      if (!workspace || operation.environmentId !== environmentId) {
        ({ environmentId } = operation);
        workspace = workspaceOf(minute, environmentId);
      }
      if (operation.type === 'issue.record') {
        if (!isError(operation.issue)) continue;
        countNames(workspace, operation.source, 'refused', operation.count);
      } else {
        const name = operation.type === 'event.track' ? operation.name : operation.type;
        countNames(workspace, name, 'accepted', 1);
      }
    }
  }

  /**
   * Rows of an import that are committed.
   *
   * @param names - of the events of the rows that were taken.
   * @param refusedCount - of the others.
   */
  countRows(environmentId: number, names: readonly string[], refusedCount: number): void {
    const workspace = workspaceOf(this.#minuteNow(), environmentId);
    for (const name of names) countNames(workspace, name, 'accepted', 1);
    if (refusedCount > 0) countNames(workspace, IMPORT_SOURCE, 'refused', refusedCount);
  }

  countAttempt({ environmentId, webhookId }: LaneKey, attempt: CountedAttempt): void {
    const workspace = workspaceOf(this.#minuteNow(), environmentId);
    workspace.hasNew = true;
    const place = attempt.status === null ? undefined : latencyClassOf(attempt.durationMs);
    countDelivery(workspace, webhookId, attempt, place);
    countDelivery(workspace, ALL_WEBHOOKS, attempt, place);
  }

  /** Writes the sums of the minutes that have grown. A failure has no effect, so the next call writes them. */
  async write(writeMinutes: WriteMinutes): Promise<void> {
    const before = this.#now() - MINUTE_MS;
    const changed: WorkspaceMinute[] = [];
    const events: EventMinute[] = [];
    const deliveries: DeliveryMinute[] = [];
    for (const [minuteMs, workspaces] of this.#minutes) {
      for (const [environmentId, workspace] of workspaces) {
        if (!workspace.hasNew) continue;
        changed.push(workspace);
        workspace.hasNew = false;
        const of = { environmentId, minuteMs };
        for (const [name, counts] of workspace.byName)
          if (counts.accepted + counts.refused > 0) events.push({ ...of, name, ...counts });
        for (const [webhookId, { latencyCounts, ...counts }] of workspace.byWebhook)
          deliveries.push({ ...of, webhookId, ...counts, latencyCounts: [...latencyCounts] });
      }
    }
    try {
      if (changed.length > 0) await writeMinutes(events, deliveries);
    } catch (error) {
      for (const workspace of changed) workspace.hasNew = true;
      throw error;
    }
    for (const [minuteMs, workspaces] of this.#minutes)
      if (minuteMs <= before && [...workspaces.values()].every(({ hasNew }) => !hasNew))
        this.#minutes.delete(minuteMs);
  }

  #minuteNow(): Map<number, WorkspaceMinute> {
    const minuteMs = Math.floor(this.#now() / MINUTE_MS) * MINUTE_MS;
    let minute = this.#minutes.get(minuteMs);
    if (!minute) {
      minute = new Map();
      this.#minutes.set(minuteMs, minute);
    }
    return minute;
  }
}

const noLatencies = (): number[] => Array.from({ length: LATENCY_CLASS_COUNT }, () => 0);

function workspaceOf(minute: Map<number, WorkspaceMinute>, environmentId: number): WorkspaceMinute {
  let workspace = minute.get(environmentId);
  if (!workspace) {
    const all = { accepted: 0, refused: 0 };
    workspace = { all, byName: new Map([[ALL_NAMES, all]]), byWebhook: new Map(), hasNew: false };
    minute.set(environmentId, workspace);
  }
  return workspace;
}

/** @param place - class of its latency; undefined without an answer. */
function countDelivery(
  { byWebhook }: WorkspaceMinute,
  webhookId: number,
  { failure }: CountedAttempt,
  place: number | undefined,
): void {
  let counts = byWebhook.get(webhookId);
  if (!counts) {
    counts = { delivered: 0, failed: 0, latencyCounts: noLatencies() };
    byWebhook.set(webhookId, counts);
  }
  counts[failure === null ? 'delivered' : 'failed']++;
  if (place !== undefined) counts.latencyCounts[place] = (counts.latencyCounts[place] ?? 0) + 1;
}

function countNames(
  workspace: WorkspaceMinute,
  name: string,
  what: keyof EventCounts,
  count: number,
): void {
  workspace.hasNew = true;
  workspace.all[what] += count;
  if (name === ALL_NAMES) return;
  // Most operations end here: one look-up each.
  const known = workspace.byName.get(name);
  if (known) {
    known[what] += count;
    return;
  }
  // One that was dead-lettered for its name must not keep the others from being written.
  const short = toStorableText(name.slice(0, NAME_LENGTH_MAX));
  if (short === ALL_NAMES) return;
  if (!workspace.byName.has(short) && workspace.byName.size > NAME_COUNT_MAX) return;
  countsOf(workspace, short)[what] += count;
}

function countsOf({ byName }: WorkspaceMinute, name: string): EventCounts {
  let counts = byName.get(name);
  if (!counts) {
    counts = { accepted: 0, refused: 0 };
    byName.set(name, counts);
  }
  return counts;
}
