/**
 * `sluice purchases …`, `secrets …`, `migrate` and `verify`: scripts of this checkout that ask the database of
 * DATABASE_URL, not a running API.
 */
import type { Command } from 'commander';

type ScriptName = 'migrate' | 'verify' | 'purchases' | 'secrets';

/** Runs a script of the checkout, with the pinned Node and this environment. */
export type RunScript<Result> = (name: ScriptName, words?: readonly string[]) => Promise<Result>;

export function addScriptCommands(program: Command, runScript: RunScript<void>): void {
  addPurchases(program, runScript);
  addSecrets(program, runScript);
  program
    .command('migrate')
    .description('brings the database of DATABASE_URL to this version')
    .action(() => runScript('migrate'));
  program
    .command('verify')
    .description(
      'checks in the database of DATABASE_URL that nothing recorded was changed; exits 1 where something was, 2 where it could not look',
    )
    .action(() => runScript('verify'));
}

function addPurchases(program: Command, runScript: RunScript<void>): void {
  const purchases = program
    .command('purchases')
    .description('purchases that were set aside for a person, in the database of DATABASE_URL');
  purchases
    .command('list')
    .description('what contradicts itself, oldest first: which run, of which account, and why')
    .action(() => runScript('purchases', ['list']));
  purchases
    .command('release')
    .argument('<run-id>', 'of the purchase')
    .description("lets it go on, once you have looked at the payment vendor's side")
    .action((runId: string) => runScript('purchases', ['release', runId]));
  purchases
    .command('fail')
    .argument('<run-id>', 'of the purchase')
    .description(
      'ends it without success, once its invoice is void or refunded at the payment vendor',
    )
    .action((runId: string) => runScript('purchases', ['fail', runId]));
}

function addSecrets(program: Command, runScript: RunScript<void>): void {
  program
    .command('secrets')
    .description('secrets of webhooks in the database of DATABASE_URL')
    .command('lost')
    .option(
      '--replace <key-id>',
      'give up what the key of this id sealed and none opens: new signing keys, shown once, and no headers',
    )
    .description(
      'what the keys of SEALING_KEYS do not open, by webhook; only reads without --replace; exits 1 where something does not, 2 where it could not look',
    )
    .action(({ replace }: { replace?: string }) =>
      runScript('secrets', replace === undefined ? ['lost'] : ['lost', `--replace=${replace}`]),
    );
}
