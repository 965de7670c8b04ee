/**
 * Billing: what HTTP costs on top of the statements that move credits and start purchases, and whether a
 * summary of two years of usage stays a small read.
 *
 * - `starts`, `debits` (`billing-writes.ts`): over HTTP against the same use cases called directly, in
 *   turn on one Postgres that loses nothing.
 * - `summary` (`billing-summaries.ts`): of 10,000,000 runs against an account that has none.
 */
import { parseArgs } from 'node:util';
import { benchSummaries } from './billing-summaries.ts';
import { benchWrites } from './billing-writes.ts';
import { isWrkInstalled, type LoadResult } from './load.ts';
import { publish } from './report.ts';

/** What a part of it found. */
export interface Findings {
  readonly ratios: Record<string, number>;
  readonly rates: Record<string, number>;
  readonly latencyMs: Record<string, number>;
  readonly details: Record<string, unknown>;
  readonly postgres: string;
}

export async function benchBilling(arguments_: string[]): Promise<void> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '32' },
      runs: { type: 'string', default: '10000000' },
    },
  });
  if (!(await isWrkInstalled()))
    throw new Error('wrk is needed for the ratios: apt-get install wrk');
  const options = {
    durationSeconds: Number(values.seconds),
    rounds: Number(values.rounds),
    connections: Number(values.connections),
    runCount: Number(values.runs),
  };
  const writes = await benchWrites(options);
  const summaries = await benchSummaries(options);
  await publish({
    bench: 'billing',
    ratios: { ...writes.ratios, ...summaries.ratios },
    rates: { ...writes.rates, ...summaries.rates },
    latencyMs: { ...writes.latencyMs, ...summaries.latencyMs },
    details: { ...writes.details, ...summaries.details },
    versions: { postgres: writes.postgres },
  });
}

export function describeLoad(label: string, result: LoadResult): string {
  return (
    `${label.padEnd(34)} ${Math.round(result.requestsPerSecond).toLocaleString('en').padStart(7)}/s  ` +
    `p50 ${result.p50Ms.toFixed(2)} ms  p99 ${result.p99Ms.toFixed(2)} ms`
  );
}
