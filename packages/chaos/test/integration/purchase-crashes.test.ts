/** A few crashes of the matrix, real processes and all; `npm run chaos:billing -- --seed N` runs every one. */
import { expect, test } from 'vitest';
import { runCrashes } from '../../src/purchases/run-crashes.ts';

/** Chooses moments of each kind, on both rails, of the worker and of the API. */
const SEED = 41_283;
const COUNT = 6;

test(
  'I15: killed with SIGKILL at any step, a purchase ends as it should, and is charged and given once',
  { timeout: 900_000 },
  async () => {
    const said: string[] = [];
    const { reports, wrong } = await runCrashes(SEED, { count: COUNT, fleetCount: 2 }, (line) =>
      said.push(line),
    );
    expect({ failed: reports.filter(({ problems }) => problems.length > 0), said }).toMatchObject({
      failed: [],
    });
    expect(reports).toHaveLength(COUNT);
    expect(wrong).toEqual([]);
  },
);
