/**
 * The processes of `npm start` beside itself: one with all services, or one each.
 *
 * Also the settings that keep them small. Idle, PSS of all with the supervisor: 545 MB for four with Node's own heaps,
 * 308 for four with these, 201 for one, npm included. Small heaps trade throughput: short-lived objects are looked
 * through more often. Processes that are started one by one, as many as wanted, have the larger heaps (`package.json`,
 * `infra/Dockerfile`).
 *
 * Used by `start-standalone.ts`; the supervisor itself has the same heap from `npm start` (`package.json`).
 */
import type { StandaloneSettings } from './settings.ts';

/**
 * - Node's default of 16 MB for each half of the young heap is filled before anything is collected: -200 MB of all.
 * - One thread of V8 beside the main one, not four: each has a stack and memory of its own.
 */
export const SMALL_HEAP_ARGUMENTS = ['--max-semi-space-size=2', '--v8-pool-size=1'] as const;

/**
 * - One heap of glibc for all threads, not eight a core: each keeps the memory that it has freed. -90 MB of all.
 * - Half of libuv's threads look names up. Of the usual four that is two, and two names of a customer's whose servers
 *   do not answer would hold up the look-ups of all services, and the inflating of intake's bodies.
 */
export const SMALL_HEAP_ENVIRONMENT = { MALLOC_ARENA_MAX: '1', UV_THREADPOOL_SIZE: '16' } as const;

/** The program of the one process, below `packages/`. */
const ALL_SERVICES = 'standalone/src/services/main.ts';
/** The name of the one process. */
const ALL_NAME = 'sluice';

/** @param name - of a process, also one that an earlier version started. @returns its program, below `packages/`. */
export const programOf = (name: string): string =>
  name === ALL_NAME ? ALL_SERVICES : `${name}/src/main.ts`;

export interface ProcessToStart {
  readonly name: string;
  /** `/readyz` of each service in it. */
  readonly readyUrls: readonly string[];
  /** It is started before Postgres is there, and loads its modules meanwhile. */
  readonly isToldLater: boolean;
}

/** @param addresses - by service. @returns the process to be stopped first as the last, as the addresses are. */
export function processesOf(
  addresses: Readonly<Record<string, string>>,
  { PROCESS_PER_SERVICE: isEach }: Pick<StandaloneSettings, 'PROCESS_PER_SERVICE'>,
): ProcessToStart[] {
  const each = Object.entries(addresses).map(([name, address]) => ({
    name,
    readyUrls: [`${address}/readyz`],
    isToldLater: false,
  }));
  if (isEach) return each;
  const readyUrls = each.flatMap((service) => service.readyUrls);
  return [{ name: ALL_NAME, readyUrls, isToldLater: true }];
}
