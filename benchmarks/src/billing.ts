/**
 * Billing: the cost of HTTP on top of the statements that move credits and start purchases. It also
 * tests that a summary of two years of usage stays a small read.
 *
 * - `starts`, `debits` (`billing-writes.ts`): over HTTP against the same use cases called directly, in
 *   turn on one durable Postgres.
 * - `summary` (`billing-summaries.ts`): of 10,000,000 runs against an account without runs.
 */
import { parseArgs } from 'node:util';
import { benchSummaries } from './billing-summaries.ts';
import { benchWrites } from './billing-writes.ts';
import { requireWrk } from './load.ts';
import type { Report } from './report.ts';

export async function benchBilling(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '32' },
      runs: { type: 'string', default: '10000000' },
    },
  });
  await requireWrk();
  const options = {
    durationSeconds: Number(values.seconds),
    rounds: Number(values.rounds),
    connections: Number(values.connections),
    runCount: Number(values.runs),
  };
  const writes = await benchWrites(options);
  const summaries = await benchSummaries(options);
  return {
    bench: 'billing',
    ratios: { ...writes.ratios, ...summaries.ratios },
    rates: { ...writes.rates, ...summaries.rates },
    latencyMs: { ...writes.latencyMs, ...summaries.latencyMs },
    details: { ...writes.details, ...summaries.details },
    versions: { postgres: writes.postgres },
  };
}
