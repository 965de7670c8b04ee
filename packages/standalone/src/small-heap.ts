/**
 * What keeps a process of a small installation small. Four of them idle after a start, PSS of all with the supervisor:
 * 545 MB without, 308 with these; under 500 events a second 586 and 313 (`npm run bench -- ordinary --embedded`).
 *
 * It trades throughput: short-lived objects are looked through more often. Processes that are started one by one, as many as
 * wanted, have the larger heaps (`package.json`, `infra/Dockerfile`).
 *
 * Used by `start-standalone.ts`; the supervisor itself has the same from `npm start` (`package.json`).
 */

/**
 * - Node's default of 16 MB for each half of the young heap is filled before anything is collected: -200 MB of all.
 * - One thread of V8 beside the main one, not four: each has a stack and memory of its own.
 */
export const SMALL_HEAP_ARGUMENTS = ['--max-semi-space-size=2', '--v8-pool-size=1'] as const;

/** One heap of glibc for all threads, not eight a core: each keeps what it has freed. -90 MB of all. */
export const SMALL_HEAP_ENVIRONMENT = { MALLOC_ARENA_MAX: '1' } as const;
