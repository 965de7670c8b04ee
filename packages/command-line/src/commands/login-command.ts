/** `sluice login`: keeps the keys of an installation under a name, after they have opened something. */
import { text } from 'node:stream/consumers';
import { AppError } from '@sluice/domain/values/errors';
import { Option, type Command } from 'commander';
import type { ApiClient } from '../connection/api-client.ts';
import { DEFAULT_PROFILE, writeProfile, type Profile } from '../connection/profiles.ts';
import { writeFields } from '../output/result.ts';
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
}

export function addLoginCommand(context: LoginContext): void {
  const { program, terminal, profilesFile: file } = context;
  program
    .command('login')
    .option('--with-key', 'an app API key of a workspace')
    .addOption(
      new Option('--with-token', 'a token of a service account of --account').conflicts('withKey'),
    )
    .description(
      'reads a secret from standard input and keeps it with --api-url and --intake-url under the name of --profile',
    )
    .action(async ({ withToken }: { withToken?: true }) => {
      const name = context.profileName() ?? DEFAULT_PROFILE;
      const secret = (await text(context.input)).trim();
      if (secret === '')
        throw new AppError(
          'COMMAND_MISUSED',
          'no secret on standard input: sluice login --with-key < FILE',
        );
      const api = context.apiWith(secret);
      const account = context.account();
      const opened = await api.request(
        'GET',
        withToken ? `/v1/accounts/${account}` : '/v1/workspaces',
      );
      const kept = withToken ? { token: secret, account } : { key: secret };
      writeProfile(file, name, { ...context.addresses(), ...kept });
      const output = terminal();
      output.note(`kept in ${file}; sluice --profile ${name} … uses it`);
      writeFields(output, { profile: name, ...opened });
    });
}
