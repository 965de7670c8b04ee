/** Options with which a process opens its queues, for both sides. */
import type { Logger } from '../process/logger.ts';

export interface BrokerOptions {
  readonly databaseUrl: string;
  /** Of the process, for Postgres. */
  readonly applicationName?: string;
  /** Absent: the queues live in Postgres. */
  readonly redisUrl?: string | undefined;
  /** Of every Redis key. On Postgres each database is a namespace of its own. */
  readonly prefix: string;
  readonly shardCount: number;
  /**
   * Taking side only: time for which a worker may be silent before its job goes to another one. 15 s by default.
   */
  readonly stalledAfterMs?: number;
  readonly logger: Logger;
}
