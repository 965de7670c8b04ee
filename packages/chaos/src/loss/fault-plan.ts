/**
 * Faults of one seed to the fleet, with their times. Pure, so that a seed is the same everywhere.
 *
 * | fault | to | is |
 * |---|---|---|
 * | `kill` | a process | SIGKILL, started again after the duration |
 * | `stop` | a process | SIGSTOP, SIGCONT after the duration |
 * | `cut` | a way to a server | every connection ended, new ones refused |
 * | `hold` | a way | bytes stay, without a sign to either side |
 * | `mute` | a way | the server hears and acts, its answers are lost |
 *
 * With several servers `redis` is one master. There each seed has a fault of it that lasts until a replica has taken
 * its place.
 */
import { pick, type Random } from '@sluice/domain/values/seeded-random';

export const BROKERS = ['redis', 'postgres', 'cluster', 'sentinels'] as const;
export type Broker = (typeof BROKERS)[number];

/** Longer than the servers take to agree that a master is gone, and to elect another one. */
export const FAILOVER_MS = 4_000;

const PROCESSES = ['intake-0', 'intake-1', 'worker-0', 'worker-1', 'postgres', 'redis'] as const;
const WAYS = [
  'intake to postgres',
  'worker to postgres',
  'intake to redis',
  'worker to redis',
] as const;

/** `worker-2`, `worker-3` and `api` are only in the fleet of the order oracle. */
export type ProcessName = (typeof PROCESSES)[number] | 'worker-2' | 'worker-3' | 'api';
/** Of both intakes at once, or of one. */
export type WayName = (typeof WAYS)[number] | OneWayName;
export type OneWayName = `${'intake-0' | 'intake-1' | 'worker'} to ${'postgres' | 'redis'}`;

interface Moment {
  readonly atMs: number;
  readonly durationMs: number;
}
export interface ProcessFault extends Moment {
  readonly of: 'process';
  readonly kind: 'kill' | 'stop';
  readonly target: ProcessName;
}
export interface WayFault extends Moment {
  readonly of: 'way';
  readonly kind: 'cut' | 'hold' | 'mute';
  readonly target: WayName;
}
export type Fault = ProcessFault | WayFault;

/** Fills `lengthMs` with faults. */
export type PlanFaults = (random: Random, broker: Broker, lengthMs: number) => Fault[];

export const FAULT_PLANS = ['mixed', 'flicker'] as const;
export type FaultPlan = (typeof FAULT_PLANS)[number];

export const PLANS: Readonly<Record<FaultPlan, PlanFaults>> = {
  mixed: planMixed,
  flicker: planFlicker,
};

// The servers of a set publish their own addresses, so no way of ours can stand in between.
const waysTo = (broker: Broker): readonly WayName[] =>
  WAYS.filter((name) => broker === 'redis' || !name.endsWith('redis'));

/**
 * One fault of a way after another, each short: about three a second. So one lost answer more often meets the actions
 * of two processes than with few long faults, and load is heavy all the time.
 */
function planFlicker(random: Random, broker: Broker, lengthMs: number): Fault[] {
  const faults: Fault[] = [];
  const next = (afterMs: number): number => afterMs + 100 + Math.floor(random() * 200);
  for (let atMs = next(0); atMs < lengthMs;) {
    const durationMs = 20 + Math.floor(random() * 150);
    const kind = pick(random, ['mute', 'mute', 'hold', 'cut'] as const);
    faults.push({ of: 'way', kind, target: pick(random, waysTo(broker)), atMs, durationMs });
    atMs = next(atMs + durationMs);
  }
  return faults;
}

/** One to four faults, each on a target of its own, within `lengthMs`; in order of time. */
function planMixed(random: Random, broker: Broker, lengthMs: number): Fault[] {
  const hasFailover = broker === 'cluster' || broker === 'sentinels';
  const processes = PROCESSES.filter((name) => broker !== 'postgres' || name !== 'redis');
  const ways = waysTo(broker);
  const taken = new Set<string>();
  const faults: Fault[] = [];
  if (hasFailover) {
    taken.add('redis');
    faults.push({
      of: 'process',
      kind: pick(random, ['kill', 'stop']),
      target: 'redis',
      atMs: Math.floor(random() * lengthMs * 0.7),
      durationMs: FAILOVER_MS + Math.floor(random() * lengthMs),
    });
  }
  const count = 1 + Math.floor(random() * 4);
  for (let n = 0; n < count; n++) {
    const times = {
      atMs: Math.floor(random() * lengthMs * 0.7),
      durationMs: 20 + Math.floor(random() ** 2 * lengthMs),
    };
    const fault: Fault =
      random() < 0.6
        ? {
            of: 'process',
            kind: pick(random, ['kill', 'stop']),
            target: pick(random, processes),
            ...times,
          }
        : {
            of: 'way',
            kind: pick(random, ['cut', 'hold', 'mute']),
            target: pick(random, ways),
            ...times,
          };
    if (taken.has(fault.target)) continue;
    taken.add(fault.target);
    faults.push(fault);
  }
  return faults.toSorted((one, other) => one.atMs - other.atMs);
}
