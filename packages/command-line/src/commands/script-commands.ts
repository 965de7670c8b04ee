/**
 * `sluice purchases …`, `secrets …`, `users …`, `parked …`, `migrate` and `verify`: scripts of this checkout that ask the database
 * of DATABASE_URL (of a running `npm start` unless that is set), not a running API.
 */
import { type Command, Option } from 'commander';

type ScriptName = 'migrate' | 'verify' | 'purchases' | 'secrets' | 'users' | 'parked';

/** Runs a script of the checkout, with the pinned Node and this environment. */
export type RunScript<Result> = (name: ScriptName, words?: readonly string[]) => Promise<Result>;

export function addScriptCommands(program: Command, runScript: RunScript<void>): void {
  addPurchases(program, runScript);
  addSecrets(program, runScript);
  addUsers(program, runScript);
  addParked(program, runScript);
  program
    .command('migrate')
    .description('brings the database of DATABASE_URL to this version')
    .action(() => runScript('migrate'));
  program
    .command('verify')
    .description(
      'verifies that recorded data in the database of DATABASE_URL are unchanged; exits 1 if data were changed, 2 if the check failed to run',
    )
    .action(() => runScript('verify'));
}

function addPurchases(program: Command, runScript: RunScript<void>): void {
  const purchases = program
    .command('purchases')
    .description('purchases in manual review, in the database of DATABASE_URL');
  purchases
    .command('list')
    .description('lists purchases in manual review, oldest first: run, account, reason')
    .action(() => runScript('purchases', ['list']));
  purchases
    .command('release')
    .argument('<run-id>', 'of the purchase')
    .description("continues the purchase; first check the payment provider's data")
    .action((runId: string) => runScript('purchases', ['release', runId]));
  purchases
    .command('fail')
    .argument('<run-id>', 'of the purchase')
    .description(
      'ends the purchase as failed; first void or refund its invoice at the payment provider',
    )
    .action((runId: string) => runScript('purchases', ['fail', runId]));
}

function addUsers(program: Command, runScript: RunScript<void>): void {
  const users = program
    .command('users')
    .description('users of the console, in the database of DATABASE_URL');
  users
    .command('invite')
    .argument('<email>', 'of the user')
    .addOption(
      new Option('--role <role>', 'rights of the user')
        .choices(['account_admin', 'billing_admin', 'member'])
        .default('account_admin'),
    )
    .description('invites a user with all workspaces of --account; the mail is sent by the API')
    .action((email: string, { role }: { role: string }, command: Command) => {
      // The program's own option, which commander finds at every position. Its default is the demo's.
      const { account } = command.optsWithGlobals<{ account: number }>();
      if (command.getOptionValueSourceWithGlobals('account') === 'default')
        command.error('error: set --account to the account whose user it is');
      return runScript('users', ['invite', email, '--account', String(account), '--role', role]);
    });
  users
    .command('code')
    .argument('<email>', 'of the user')
    .description('prints a code that signs a user in, in place of a mailed one')
    .action((email: string) => runScript('users', ['code', email]));
  users
    .command('reset')
    .argument('<email>', 'of the user')
    .description('removes the second factor of a user who has lost it, and ends the sessions')
    .action((email: string) => runScript('users', ['reset', email]));
  users
    .command('end-sessions')
    .argument('<email>', 'of the user')
    .description('signs a user out everywhere')
    .action((email: string) => runScript('users', ['end-sessions', email]));
  users
    .command('without-provider')
    .argument('<email>', 'of the user')
    .description('lifts the requirement of an identity provider from the account of the user')
    .action((email: string) => runScript('users', ['without-provider', email]));
}

function addParked(program: Command, runScript: RunScript<void>): void {
  const parked = program
    .command('parked')
    .description(
      "dead-lettered operations, in the database of DATABASE_URL; with a worker's settings",
    );
  parked
    .command('list')
    .description('lists them, oldest first, one JSON document a line')
    .action(() => runScript('parked', ['list']));
  parked
    .command('retry')
    .description('queues all of them again')
    .action(() => runScript('parked', ['retry']));
}

function addSecrets(program: Command, runScript: RunScript<void>): void {
  program
    .command('secrets')
    .description('secrets of webhooks in the database of DATABASE_URL')
    .command('lost')
    .option(
      '--replace <key-id>',
      'replace the lost secrets that the key of this id encrypted: new signing keys, shown once, and no headers',
    )
    .description(
      'lists secrets, by webhook, that the keys of SEALING_KEYS cannot decrypt; only reads without --replace; exits 1 if there are any, 2 if the check failed to run',
    )
    .action(({ replace }: { replace?: string }) =>
      runScript('secrets', replace === undefined ? ['lost'] : ['lost', `--replace=${replace}`]),
    );
}
