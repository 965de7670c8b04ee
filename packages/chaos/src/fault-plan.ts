/**
 * What one seed does to the fleet, and when: pure, so that a seed means the same everywhere.
 *
 * | fault | to | is |
 * |---|---|---|
 * | `kill` | a process | SIGKILL, started again after the duration |
 * | `stop` | a process | SIGSTOP, SIGCONT after the duration |
 * | `cut` | a way to a server | every connection ended, none opened |
 * | `hold` | a way | nothing passes, nobody is told |
 * | `mute` | a way | the server hears and acts, its answers are lost |
 */
export type Random = () => number;

export const PROCESSES = [
  'intake-0',
  'intake-1',
  'worker-0',
  'worker-1',
  'postgres',
  'redis',
] as const;
const WAYS = [
  'intake to postgres',
  'worker to postgres',
  'intake to redis',
  'worker to redis',
] as const;

export type ProcessName = (typeof PROCESSES)[number];
export type WayName = (typeof WAYS)[number];

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

/** The same numbers for the same seed, in [0, 1). (mulberry32) */
export function randomOf(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const pick = <Item>(random: Random, items: readonly Item[]): Item =>
  items[Math.floor(random() * items.length)] as Item;

/** One to four faults, each on a target of its own, within `lengthMs`; in order of time. */
export function planFaults(
  random: Random,
  broker: 'redis' | 'postgres',
  lengthMs: number,
): Fault[] {
  const isThere = (name: string) => broker === 'redis' || !name.endsWith('redis');
  const processes = PROCESSES.filter(isThere);
  const ways = WAYS.filter(isThere);
  const taken = new Set<string>();
  const faults: Fault[] = [];
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
