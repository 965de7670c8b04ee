/**
 * Options that every command takes, and the sources of their values. An option may stand before or after the name of
 * the command. Its value comes from the words, the environment, the profile, the `npm start` beside, or the demo.
 */
import { Command, Option } from 'commander';
import { address, columnNames, positiveInteger } from '../input/arguments.ts';
import { OUTPUT_FORMATS, type OutputFormat } from '../output/terminal.ts';
import { DEFAULT_PROFILE, type Profile, type Profiles, profileOf } from './profiles.ts';
import type { RunningStart } from './running-start.ts';

export interface ProgramOptions {
  readonly apiUrl: string;
  readonly intakeUrl: string;
  readonly workerUrls: readonly string[];
  readonly key: string;
  readonly writeKey: string | undefined;
  readonly token: string;
  readonly account: number;
  readonly profile: string | undefined;
  readonly output: OutputFormat;
  readonly columns: readonly string[] | undefined;
}

/** The program without its commands. */
export function createBareProgram(version: string, start: RunningStart | undefined): Command {
  return (
    new Command('sluice')
      .description('Shows and operates a Sluice installation: processes, waiting work, deliveries.')
      .version(version)
      .addOption(
        new Option('--api-url <url>', 'URL of the API')
          .env('SLUICE_API_URL')
          .default(start?.apiUrl ?? 'http://127.0.0.1:8090')
          .argParser(address),
      )
      .addOption(
        new Option('--intake-url <url>', 'intake')
          .env('SLUICE_INTAKE_URL')
          .default(start?.intakeUrl ?? 'http://127.0.0.1:8080')
          .argParser(address),
      )
      .addOption(
        new Option('--key <key>', 'an app API key of the workspace')
          .env('SLUICE_KEY')
          .default('demo_app_key', "the demo workspace's"),
      )
      .addOption(
        new Option('--token <token>', 'sa_live_… or sa_sandbox_… of a service account')
          .env('SLUICE_ACCOUNT_TOKEN')
          .default('sa_sandbox_demo', "the demo account's"),
      )
      .addOption(
        new Option('--account <id>', 'the account of the token')
          .env('SLUICE_ACCOUNT')
          .argParser(positiveInteger)
          .default(1),
      )
      .addOption(
        new Option(
          '--profile <name>',
          'profile with the addresses and keys that sluice login stored',
        ).env('SLUICE_PROFILE'),
      )
      .addOption(
        new Option('--output <format>', 'table is for people; the other formats are exact')
          .choices(OUTPUT_FORMATS)
          .default('table'),
      )
      .addOption(
        new Option('--json', 'short for --output json: one JSON document, or one per line').implies(
          {
            output: 'json',
          },
        ),
      )
      .addOption(
        new Option('--columns <names>', 'members to show, separated by commas').argParser(
          columnNames,
        ),
      )
      // A wrong word ends it with a code of its own (`main.ts`), and with two lines: forty of help hide the first.
      .exitOverride()
      .configureOutput({ outputError: (text, write) => write(text.replace(/\n\(/, ' (')) })
      .showHelpAfterError('sluice --help lists the commands, sluice COMMAND --help its options')
      .addHelpText(
        'after',
        `
Exit codes: 0 done, 1 refused or not as it should be, 2 a wrong word, 3 not reached, 4 no right.

Examples, beside a running npm start:
  sluice status
  sluice send --count 1000 --rate 200
  sluice tail --outcome refused
  sluice events trace 01K…
  sluice webhooks list`,
      )
  );
}

export interface OptionSources {
  readonly runningStart: RunningStart | undefined;
  readonly readProfiles: () => Profiles;
  readonly profilesFile: string;
}

/**
 * Words and environment come before the profile, and the profile comes before the `npm start` beside. A profile is used
 * if it is named, or if no `npm start` runs beside and there is one of the name `default`.
 *
 * @throws AppError COMMAND_MISUSED for a profile that does not exist.
 */
export function resolveOptions(program: Command, sources: OptionSources): ProgramOptions {
  const given = program.opts<Omit<ProgramOptions, 'workerUrls' | 'writeKey'>>();
  const profile = profileFor(given.profile, program, sources);
  // Of the options that have a default.
  const isDefault = (name: keyof ProgramOptions): boolean =>
    program.getOptionValueSource(name) === 'default';
  const of = <Value>(name: keyof ProgramOptions, kept: Value | undefined, value: Value): Value =>
    isDefault(name) ? (kept ?? value) : value;
  return {
    ...given,
    apiUrl: of('apiUrl', profile.apiUrl, given.apiUrl),
    intakeUrl: of('intakeUrl', profile.intakeUrl, given.intakeUrl),
    key: of('key', profile.key, given.key),
    token: of('token', profile.token, given.token),
    account: of('account', profile.account, given.account),
    workerUrls: profile.workerUrls ?? [sources.runningStart?.workerUrl ?? 'http://127.0.0.1:8092'],
    writeKey: profile.writeKey,
  };
}

const NOTHING: Profile = {};

function profileFor(
  name: string | undefined,
  program: Command,
  { runningStart, readProfiles, profilesFile }: OptionSources,
): Profile {
  // The one that `login` is about to write.
  if (name !== undefined) {
    const profiles = readProfiles();
    if (program.args[0] === 'login' && !Object.hasOwn(profiles, name)) return NOTHING;
    return profileOf(profiles, name, profilesFile);
  }
  return runningStart ? NOTHING : (readProfiles()[DEFAULT_PROFILE] ?? NOTHING);
}
