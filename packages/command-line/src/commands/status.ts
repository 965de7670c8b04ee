/**
 * `sluice status`: the processes, their readiness with the reason, and the lag of the fleet. Read from `/readyz` and
 * `/metrics` of each process, so it needs no key and shows the view of a probe and a scrape. If the present keys allow
 * more, it names failing webhooks, and shards with their backlogs.
 */
import { durationText } from '@sluice/console/sentences/time-text';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { writeFields, writeRows } from '../output/result.ts';
import { colored, type Terminal } from '../output/terminal.ts';
import { type FleetDetails, writeDetails } from './status-details.ts';

export interface ProcessStatus {
  readonly url: string;
  readonly isReached: boolean;
  readonly isReady: boolean;
  /** The status of `/readyz`; null if there was no answer. */
  readonly status: number | null;
  /** Answer of `/readyz`; null if it is no JSON, so that it is not one of our processes. */
  readonly readiness: unknown;
  /** `intake`, `api` or `worker`; null if `/metrics` does not have it. */
  readonly service: string | null;
  readonly version: string | null;
  /** Unix milliseconds. */
  readonly startedAtMs: number | null;
  /** Ours by name, without labels. */
  readonly metrics: Readonly<Record<string, number>>;
}

const TIMEOUT_MS = 5_000;

/** Asks every process at once; the result marks one that does not answer. */
export async function readStatus(urls: readonly string[]): Promise<ProcessStatus[]> {
  return Promise.all(urls.map(readProcess));
}

const UNKNOWN = { service: null, version: null, startedAtMs: null, metrics: {} };

async function readProcess(url: string): Promise<ProcessStatus> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const [readiness, metrics] = await Promise.all([
      fetch(`${url}/readyz`, { signal }),
      fetch(`${url}/metrics`, { signal }),
    ]);
    const said: unknown = await readiness.json().catch(() => null);
    const page = await metrics.text();
    return {
      url,
      isReached: true,
      isReady: readiness.ok && said !== null,
      status: readiness.status,
      readiness: said,
      ...identityOf(page),
      metrics: parseMetrics(page),
    };
  } catch {
    const nobody = { isReached: false, isReady: false, status: null, readiness: null };
    return { url, ...nobody, ...UNKNOWN };
  }
}

/** The process's identity, by the labels and the library's own figures. */
function identityOf(page: string): Pick<ProcessStatus, 'service' | 'version' | 'startedAtMs'> {
  const [, service = null] = /^sluice_\w+\{[^}]*\bservice="(\w+)"/m.exec(page) ?? [];
  const [, version = null] = /^sluice_build_info\{[^}]*\bversion="([^"]*)"/m.exec(page) ?? [];
  const [, started] = /^process_start_time_seconds(?:\{[^}]*\})? (\S+)$/m.exec(page) ?? [];
  return { service, version, startedAtMs: started === undefined ? null : Number(started) * 1_000 };
}

/** Sums figures over their labels. */
export function parseMetrics(page: string): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const [, name = '', value] of page.matchAll(/^(sluice_\w+)(?:\{[^}]*\})? (\S+)$/gm)) {
    metrics[name] = (metrics[name] ?? 0) + Number(value);
  }
  return metrics;
}

/**
 * The figures of the whole fleet: the one furthest from 0 that any process reports. Only disk buffers and wrong keys
 * are added, since each intake has its own.
 */
const BACKLOG = [
  ['unprocessed', 'sluice_unprocessed_oldest_seconds', 's, age of the oldest event not processed'],
  ['queued', 'sluice_queued_envelopes', 'commit batches wait or run'],
  ['failed', 'sluice_failed_envelopes', 'commit batches failed'],
  ['undelivered', 'sluice_undelivered_deliveries', 'deliveries wait for endpoints that answer'],
  ['undelivered age', 'sluice_undelivered_oldest_seconds', 's, age of the oldest of them'],
  ['failing queues', 'sluice_failing_lanes', 'webhooks fail and their deliveries are blocked'],
  ['blocked', 'sluice_held_back_deliveries', 'deliveries wait behind a failed one'],
  ['disk buffer', 'sluice_intake_spill_envelopes', 'commit batches wait on the disks of intakes'],
  [
    'wrong keys',
    'sluice_intake_unauthorized_calls_total',
    'calls were not accepted since the start, because their keys are not valid; permissive ones were answered 200',
  ],
  ['clock', 'sluice_clock_ahead_seconds', 's ahead of Postgres, the clock that is furthest off'],
] as const;

/** Of shards, or of lanes, that no worker gets on with; undefined of a process that does not look. */
function stuckQueuesOf({ readiness }: ProcessStatus): string[] | undefined {
  const { stuck_queues: queues } = (readiness ?? {}) as { readonly stuck_queues?: unknown };
  return Array.isArray(queues) ? queues.map(String) : undefined;
}

/** Why no commit batch gets through in a process; undefined if any does. */
function failingOf({ readiness }: ProcessStatus): string | undefined {
  const { failing } = (readiness ?? {}) as { readonly failing?: { readonly reason?: unknown } };
  return typeof failing?.reason === 'string' ? failing.reason : undefined;
}

/** The broker of an intake that may lose acknowledged calls; undefined for all others. */
function undurableOf({ readiness }: ProcessStatus): string | undefined {
  const { durable, broker, broker_answers } = (readiness ?? {}) as Record<string, unknown>;
  const isUndurable = durable === false && broker_answers === true;
  return isUndurable && typeof broker === 'string' ? broker : undefined;
}

const whyNotReady = ({ status, readiness }: ProcessStatus): string =>
  readiness === null
    ? `/readyz answers ${status}, but not as a process of Sluice does; is this its own address, not the address of a proxy?`
    : printableJson(readiness);

/**
 * @param details - facts that the keys open; empty by default.
 * @returns whether every process is ready.
 */
export function writeStatus(
  terminal: Terminal,
  processes: readonly ProcessStatus[],
  details: FleetDetails = {},
): boolean {
  const areReady = processes.every(({ isReady }) => isReady);
  if (terminal.format === 'json' || terminal.format === 'yaml') {
    writeFields(terminal, { ready: areReady, processes, ...details });
    return areReady;
  }
  writeRows(
    terminal,
    processes.map((each) => processRow(terminal, each)),
    ['process', 'role', 'version', 'up', 'ready'],
    '',
  );
  if (terminal.format === 'csv') return areReady;
  for (const each of processes) {
    if (each.isReached && !each.isReady)
      terminal.line(`${each.url}: ${colored(terminal, 'red', whyNotReady(each))}`);
  }
  writeBacklog(terminal, processes);
  writeDetails(terminal, details);
  return areReady;
}

function processRow(terminal: Terminal, each: ProcessStatus): Record<string, unknown> {
  const { url, service, version, startedAtMs, isReached, isReady } = each;
  return {
    process: url,
    role: service,
    version,
    up: startedAtMs === null ? null : durationText(terminal.now() - startedAtMs),
    ready: isReady ? 'ready' : isReached ? 'not ready' : 'does not answer',
  };
}

function writeBacklog(terminal: Terminal, processes: readonly ProcessStatus[]): void {
  const rows = BACKLOG.flatMap<{ what: string; value: number; meaning: string }>(
    ([what, name, meaning]) => {
      const values = processes.flatMap(({ metrics }) => metrics[name] ?? []);
      if (values.length === 0) return [];
      const value = values.reduce((a, b) =>
        what === 'disk buffer' || what === 'wrong keys' ? a + b : Math.abs(b) > Math.abs(a) ? b : a,
      );
      // Ages and clocks come with more digits than anybody reads.
      return [{ what, value: Math.round(value * 100) / 100, meaning }];
    },
  );
  const stuck = processes.flatMap((each) => stuckQueuesOf(each) ?? []);
  if (processes.some(stuckQueuesOf)) {
    const names = [...new Set(stuck)];
    const which = names.length === 0 ? '' : `: ${names.map(printable).join(', ')}`;
    const meaning = `queues make no progress${which}`;
    rows.push({ what: 'stuck', value: names.length, meaning });
  }
  const failing = processes.flatMap((each) => failingOf(each) ?? []);
  if (failing.length > 0) {
    const reasons = [...new Set(failing)].map(printable).join('; ');
    const meaning = `workers apply no commit batch, each try fails: ${reasons}`;
    rows.push({ what: 'failing', value: failing.length, meaning });
  }
  const undurable = processes.flatMap((each) => undurableOf(each) ?? []);
  if (undurable.length > 0) {
    const meaning = [...new Set(undurable)].map(printable).join('; ');
    rows.push({ what: 'not durable', value: undurable.length, meaning });
  }
  // If no process reported a figure, a line would read as if the backlog were empty.
  if (rows.length === 0) return;
  terminal.line('');
  writeRows({ ...terminal, columns: undefined }, rows, ['what', 'value', 'meaning'], '');
}
