/** A seed's crashes one after another on one fleet, and what the books say afterwards. */
import { crashPurchase, type CellReport } from './crash-purchase.ts';
import { randomOf } from '../fault-plan.ts';
import { findWrongBooks } from './books.ts';
import { chooseCells, nameOf } from './cells.ts';
import { startPurchaseFleet } from './fleet.ts';

export interface CrashesReport {
  readonly reports: readonly CellReport[];
  /** Of the books; empty where they hold. */
  readonly wrong: readonly string[];
}

/**
 * @param choice - `count` crashes chosen by the seed, or all; of those, the ones whose name has `only`.
 * @param say - told of each as it ends, and of what the processes said last where one failed.
 */
export async function runCrashes(
  seed: number,
  choice: { readonly count?: number | undefined; readonly only?: string },
  say: (line: string) => void,
): Promise<CrashesReport> {
  const random = randomOf(seed);
  const { count, only = '' } = choice;
  const cells = chooseCells(random, count).filter((cell) => nameOf(cell).includes(only));
  say(`seed ${seed}: ${cells.length} crashes`);
  const fleet = await startPurchaseFleet(random);
  try {
    const reports: CellReport[] = [];
    for (const cell of cells) {
      const report = await crashPurchase(fleet, cell);
      reports.push(report);
      const { name, recoveryMs, problems } = report;
      say(`${problems.length === 0 ? 'held  ' : 'FAILED'} ${name} (${recoveryMs} ms)`);
      if (problems.length === 0) continue;
      for (const problem of problems) say(`  ! ${problem}`);
      for (const service of ['api', 'worker'] as const)
        for (const line of fleet.lastLines(service)) say(`    ${service}: ${line.slice(0, 2_000)}`);
    }
    const wrong = await findWrongBooks(fleet);
    for (const problem of wrong) say(`  ! ${problem}`);
    return { reports, wrong };
  } finally {
    await fleet.close();
  }
}
