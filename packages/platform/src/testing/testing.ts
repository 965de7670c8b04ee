/**
 * Redis for tests: the run's own `redis-server` (`scripts/test-services.ts` starts it), shared by
 * all files, so each use of it keeps to a prefix of its own.
 */
import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    readonly testRedisUrl: string;
  }
}

/** Of a Redis with `appendonly yes` and `appendfsync always`. */
export const testRedisUrl = (): string => inject('testRedisUrl');

/** Makes a unique prefix for keys and names. */
export const uniquePrefix = (): string => `test-${randomBytes(6).toString('hex')}`;
