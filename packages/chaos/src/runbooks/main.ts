/** `npm run runbooks [NAME…]`: executes the pages of `docs/operations/runbooks/`, by default all. */
import { Argument, Command } from 'commander';
import { executeRunbook, RUNBOOKS } from './execute-runbook.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);
const { args } = new Command('npm run runbooks --')
  .description(
    'Types the commands of a runbook into a fleet in its situation, and looks for the output that it shows.',
  )
  .addArgument(new Argument('[name...]', 'default: all').choices(RUNBOOKS))
  .parse();
const wanted = args.length > 0 ? args : RUNBOOKS;
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
