/** Tests that fail on Citus, each with its reason (`test-distributed.ts`). */
export interface DistributedException {
  /** The end of its path. */
  readonly file: string;
  /** Part of its name. */
  readonly test: string;
  readonly reason: string;
}

export const DISTRIBUTED_EXCEPTIONS: readonly DistributedException[] = [];
