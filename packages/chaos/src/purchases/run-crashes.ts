/**
 * A seed's crashes, and the findings of ledger reconciliation afterwards.
 *
 * Several fleets go through them side by side, each with a database, a payment provider and a ledger of its own. Most
 * of a crash is the start of the next process, which one core does.
 */
import { seededRandom, type Random } from '@sluice/domain/values/seeded-random';
import { crashPurchase, type CellReport } from './crash-purchase.ts';
import { findLedgerDifferences } from './ledger-reconciliation.ts';
import { chooseCells, nameOf, type Cell } from './cells.ts';
import { startPurchaseFleet } from './fleet.ts';

export interface CrashesReport {
  readonly reports: readonly CellReport[];
  /** Of ledger reconciliation; empty if all agree. */
  readonly wrong: readonly string[];
}

/**
 * @param choice - `count` crashes chosen by the seed, or all; of those, the ones whose name has `only`; on
 *   so many fleets.
 * @param say - called for each as it ends, and with the processes' last lines if one failed.
 */
export async function runCrashes(
  seed: number,
  choice: {
    readonly count?: number | undefined;
    readonly only?: string;
    readonly fleetCount?: number;
  },
  say: (line: string) => void,
): Promise<CrashesReport> {
  const { count, only = '', fleetCount = 1 } = choice;
  const left = chooseCells(seededRandom(seed), count).filter((cell) => nameOf(cell).includes(only));
  say(`seed ${seed}: ${left.length} crashes`);
  // All, so that each is closed before the error of a broken one is thrown.
  const parts = await Promise.allSettled(
    Array.from({ length: Math.min(fleetCount, left.length) }, (_, index) =>
      crashFleet(seededRandom(seed + index), left, say),
    ),
  );
  const broken = parts.find((part) => part.status === 'rejected');
  if (broken) throw broken.reason;
  const ended = parts.flatMap((part) => (part.status === 'fulfilled' ? [part.value] : []));
  return {
    reports: ended.flatMap(({ reports }) => reports),
    wrong: ended.flatMap(({ wrong }) => wrong),
  };
}

/** Takes from `left`, which other fleets take from too, until it is empty. */
async function crashFleet(
  random: Random,
  left: Cell[],
  say: (line: string) => void,
): Promise<CrashesReport> {
  const fleet = await startPurchaseFleet(random);
  try {
    const reports: CellReport[] = [];
    for (let cell = left.shift(); cell; cell = left.shift()) {
      const report = await crashPurchase(fleet, cell);
      reports.push(report);
      const { name, recoveryMs, problems } = report;
      say(`${problems.length === 0 ? 'held  ' : 'FAILED'} ${name} (${recoveryMs} ms)`);
      if (problems.length === 0) continue;
      for (const problem of problems) say(`  ! ${problem}`);
      for (const service of ['api', 'worker'] as const)
        for (const line of fleet.lastLines(service)) say(`    ${service}: ${line.slice(0, 2_000)}`);
    }
    const wrong = await findLedgerDifferences(fleet);
    for (const problem of wrong) say(`  ! ${problem}`);
    return { reports, wrong };
  } finally {
    await fleet.close();
  }
}
