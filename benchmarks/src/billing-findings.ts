/** Findings of the billing benchmark's parts, and the lines of a load. */
import type { LoadResult } from './load.ts';

/** Findings of one part. */
export interface Findings {
  readonly ratios: Record<string, number>;
  readonly rates: Record<string, number>;
  readonly latencyMs: Record<string, number>;
  readonly details: Record<string, unknown>;
  readonly postgres: string;
}

export function describeLoad(label: string, result: LoadResult): string {
  return (
    `${label.padEnd(34)} ${Math.round(result.requestsPerSecond).toLocaleString('en').padStart(7)}/s  ` +
    `p50 ${result.p50Ms.toFixed(2)} ms  p99 ${result.p99Ms.toFixed(2)} ms`
  );
}
