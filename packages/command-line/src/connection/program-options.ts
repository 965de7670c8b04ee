/**
 * Options that every command takes, and the sources of their values. An option may stand before or after the name of
 * the command. Its value comes from the words, the environment, the profile, the `npm start` beside, or the demo.
 */
import { Command, Option } from 'commander';
import { address, columnNames, positiveInteger } from '../input/arguments.ts';
import { OUTPUT_FORMATS, type OutputFormat } from '../output/terminal.ts';
import { DEFAULT_PROFILE, type Profile, type Profiles, profileOf } from './profiles.ts';
import type { RunningStart } from './running-start.ts';

const API_URL_DEFAULT = 'http://127.0.0.1:8090';

export interface ProgramOptions {
  readonly apiUrl: string;
  /** Undefined, as the keys below: the profile that is used is of another installation, and lacks it. */
  readonly intakeUrl: string | undefined;
  /** Empty if the profile lacks them. */
  readonly workerUrls: readonly string[];
  /** An app API key. */
  readonly key: string | undefined;
  readonly writeKey: string | undefined;
  readonly token: string | undefined;
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
          .default(start?.apiUrl ?? API_URL_DEFAULT)
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
 * A profile with an API of its own is of another installation. The addresses and keys that it lacks are unknown then:
 * the addresses of this machine and the keys of the demo would lead to the wrong installation.
 *
 * @throws AppError COMMAND_MISUSED for a profile that does not exist.
 */
export function resolveOptions(program: Command, sources: OptionSources): ProgramOptions {
  const given = program.opts<GivenOptions>();
  const profile = profileFor(given.profile, program, sources);
  // Of the options that have a default.
  const isDefault = (name: keyof ProgramOptions): boolean =>
    program.getOptionValueSource(name) === 'default';
  const of = <Value>(name: keyof ProgramOptions, kept: Value | undefined, value: Value): Value =>
    isDefault(name) ? (kept ?? value) : value;
  const here = sources.runningStart?.apiUrl ?? API_URL_DEFAULT;
  const isElsewhere = profile.apiUrl !== undefined && profile.apiUrl !== here;
  const ofHere = <Value>(value: Value): Value | undefined => (isElsewhere ? undefined : value);
  const ofInstallation = (name: 'intakeUrl' | 'key' | 'token'): string | undefined =>
    isDefault(name) ? (profile[name] ?? ofHere(given[name])) : given[name];
  return {
    ...given,
    apiUrl: of('apiUrl', profile.apiUrl, given.apiUrl),
    intakeUrl: ofInstallation('intakeUrl'),
    key: ofInstallation('key'),
    token: ofInstallation('token'),
    account: of('account', profile.account, given.account),
    workerUrls:
      profile.workerUrls ??
      (isElsewhere ? [] : [sources.runningStart?.workerUrl ?? 'http://127.0.0.1:8092']),
    writeKey: profile.writeKey ?? ofHere('demo_write_key'),
  };
}

/** Options of the words and the environment, or their defaults. */
interface GivenOptions extends Omit<ProgramOptions, 'workerUrls' | 'writeKey'> {
  readonly intakeUrl: string;
  readonly key: string;
  readonly token: string;
}

/**
 * Addresses for the profile that `login` writes: of the API, and of intake if it was given, or if both are this
 * machine's.
 */
export function addressesOf(
  program: Command,
  { apiUrl }: Pick<ProgramOptions, 'apiUrl'>,
): Pick<Profile, 'apiUrl' | 'intakeUrl'> {
  const given = program.opts<GivenOptions>();
  const isDefault = (name: string): boolean => program.getOptionValueSource(name) === 'default';
  const isOfHere = isDefault('apiUrl') && given.apiUrl === apiUrl;
  return {
    apiUrl,
    ...((isOfHere || !isDefault('intakeUrl')) && { intakeUrl: given.intakeUrl }),
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
