/**
 * `sluice login`: keeps the keys of an installation under a name. A user lets the program in, by a code that is typed into
 * the console; or a key or a token is read from standard input, and kept after it has opened something. `sluice logout`
 * revokes the keys that a user let the program have, and removes the name.
 */
import { text } from 'node:stream/consumers';
import { type ApiClient, resultOf } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import { printable } from '@sluice/domain/values/printable';
import { Option, type Command } from 'commander';
import { endLogin, loginByCode } from '../connection/device-login.ts';
import {
  DEFAULT_PROFILE,
  profileOf,
  readProfiles,
  removeProfile,
  writeProfile,
  type Profile,
} from '../connection/profiles.ts';
import { writeFields } from '../output/result.ts';
import { gather } from '../input/arguments.ts';
import type { Terminal } from '../output/terminal.ts';

export interface LoginContext {
  readonly program: Command;
  readonly terminal: () => Terminal;
  /** The API at `--api-url`, called with this key. */
  readonly apiWith: (key: string) => ApiClient;
  readonly addresses: () => Pick<Profile, 'apiUrl' | 'intakeUrl'>;
  /** `--account` */
  readonly account: () => number;
  readonly profileName: () => string | undefined;
  readonly profilesFile: string;
  readonly input: NodeJS.ReadableStream;
  readonly hostName: () => string;
  readonly signal: AbortSignal;
  readonly pause: (durationMs: number) => Promise<unknown>;
}

export function addLoginCommand(context: LoginContext): void {
  const { program, terminal, profilesFile: file } = context;
  program
    .command('login')
    .option('--with-key', 'read an app API key of a workspace from standard input')
    .addOption(
      new Option(
        '--with-token',
        'read a token of a service account of --account from standard input',
      ).conflicts('withKey'),
    )
    .description(
      'shows a code that you type into the console, and keeps the keys that it gets with --api-url and --intake-url under the name of --profile',
    )
    .option('--worker-url <url>', 'a worker, for sluice status; again for more', gather)
    .action(async ({ withKey, withToken, workerUrl }: LoginOptions) => {
      const name = context.profileName() ?? DEFAULT_PROFILE;
      const workerUrls = workerUrl && { workerUrls: workerUrl };
      if (!withKey && !withToken) return loginAsUser(context, name, workerUrls);
      const secret = (await text(context.input)).trim();
      if (secret === '')
        throw new AppError(
          'COMMAND_MISUSED',
          'no secret on standard input; give one by sluice login --with-key < FILE, or log in by the console without an option',
        );
      const api = context.apiWith(secret);
      const account = context.account();
      const opened = withToken
        ? await resultOf(
            api.GET('/v1/accounts/{account_id}', { params: { path: { account_id: account } } }),
          )
        : await resultOf(api.GET('/v1/workspaces'));
      keep(context, name, {
        ...workerUrls,
        ...(withToken ? { token: secret, account } : { key: secret }),
      });
      const output = terminal();
      output.note(`kept in ${file}; sluice --profile ${name} … uses it`);
      writeFields(output, { profile: name, ...opened });
      return undefined;
    });
}

interface LoginOptions {
  readonly withKey?: true;
  readonly withToken?: true;
  readonly workerUrl?: string[];
}

/** `sluice logout`, beside {@link addLoginCommand}. */
export function addLogoutCommand(context: LoginContext): void {
  const { program, terminal, profilesFile: file, signal } = context;
  program
    .command('logout')
    .description(
      'revokes the keys that sluice login got for --profile, and removes the profile from this machine',
    )
    .action(async () => {
      const name = context.profileName() ?? DEFAULT_PROFILE;
      const { token, apiUrl } = profileOf(readProfiles(file), name, file);
      const isRevoked =
        token !== undefined && apiUrl !== undefined && (await endLogin({ apiUrl, signal }, token));
      // The options of the terminal need the profile.
      const output = terminal();
      removeProfile(file, name);
      if (!isRevoked)
        output.note('No key was revoked: only the keys that a user let in by a code are.');
      writeFields(output, { profile: name, removed: true, revoked: isRevoked });
    });
}

async function loginAsUser(
  context: LoginContext,
  name: string,
  workerUrls: Pick<Profile, 'workerUrls'> | undefined,
): Promise<void> {
  const output = context.terminal();
  const made = await loginByCode({
    apiUrl: context.addresses().apiUrl ?? '',
    hostName: context.hostName(),
    signal: context.signal,
    pause: context.pause,
    show: ({ uri, code }) => {
      output.note(
        printable(`Open ${uri} in a browser that is signed in, and type the code ${code}`),
      );
      output.note('It is good for 10 minutes. Keep it to yourself.');
    },
  });
  const { token, key, ...shown } = made;
  keep(context, name, {
    ...workerUrls,
    ...{ token, account: made.account_id },
    ...(key !== null && { key }),
  });
  output.note(`kept in ${context.profilesFile}; sluice --profile ${name} … uses it`);
  writeFields(output, { profile: name, ...shown });
}

/**
 * Adds to a profile of the same installation, and replaces the profile of another one. Its keys go if they
 * are of another account. An app key alone names no account, so it stays.
 */
function keep(context: LoginContext, name: string, kept: Profile): void {
  const { profilesFile: file } = context;
  const addresses = context.addresses();
  const { [name]: before = {} } = readProfiles(file);
  const { key, writeKey, token, account, ...places } = before;
  const isSame = before.apiUrl === addresses.apiUrl;
  const isSameAccount =
    kept.account === undefined || account === undefined || kept.account === account;
  const keys = {
    ...(key !== undefined && { key }),
    ...(writeKey !== undefined && { writeKey }),
    ...(token !== undefined && { token }),
    ...(account !== undefined && { account }),
  };
  writeProfile(file, name, {
    ...(isSame && places),
    ...(isSame && isSameAccount && keys),
    ...addresses,
    ...kept,
  });
}
