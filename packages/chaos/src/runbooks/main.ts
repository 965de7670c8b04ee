/** `npm run runbooks [NAME…]`: executes the pages of `infra/runbooks/`, all unless told. */
import { executeRunbook, RUNBOOKS } from './execute-runbook.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);
const wanted = process.argv.length > 2 ? process.argv.slice(2) : RUNBOOKS;
let failedCount = 0;
for (const name of wanted) {
  const startedAtMs = performance.now();
  const outcome = await executeRunbook(name, process.env['PATH'] ?? '', say).then(
    () => 'held',
    (error: unknown) => `FAILED: ${error instanceof Error ? error.message : String(error)}`,
  );
  if (outcome !== 'held') failedCount++;
  say(`${name}: ${outcome} (${Math.round((performance.now() - startedAtMs) / 1000)} s)`);
}
process.exit(failedCount === 0 ? 0 : 1);
