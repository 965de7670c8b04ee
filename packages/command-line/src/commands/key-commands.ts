/** `sluice keys …`: the credentials of an account, with a token of one of its service accounts. */
import { AppError } from '@sluice/domain/values/errors';
import { Option } from 'commander';
import { positiveInteger } from '../input/arguments.ts';
import { writeFields, writeRows, type Row } from '../output/result.ts';
import type { AccountContext } from './account-commands.ts';

export function addKeyCommands({
  program,
  terminal,
  api,
  path: accountPath,
}: AccountContext): void {
  const keys = program
    .command('keys')
    .description('keys of an account: list, make, rotate, revoke');
  const path = (rest = ''): string => accountPath(`/api_credentials${rest}`);

  keys
    .command('list')
    .description('lists all keys, without their secrets')
    .action(async () => {
      const { api_credentials: found } = await api().request('GET', path());
      writeRows(
        terminal(),
        found as Row[],
        ['id', 'type', 'name', 'environment_id', 'last_used_at', 'revoked_at'],
        'no key in this account',
      );
    });
  keys
    .command('make')
    .argument('<type>', 'pipelines, tracking, app or service_account')
    .argument('<name>', 'name of the key')
    .option(
      '--workspace <id>',
      'workspace of the key; a service account belongs to no workspace',
      positiveInteger,
    )
    .addOption(
      new Option('--role <role>', 'role of a service account (member by default)').choices([
        'account_admin',
        'billing_admin',
        'member',
      ]),
    )
    .description('makes a key; its secret is shown once')
    .action(async (type: string, name: string, options: { workspace?: number; role?: string }) => {
      const { workspace, role } = options;
      if (type !== 'service_account' && workspace === undefined)
        throw new AppError(
          'COMMAND_MISUSED',
          `a key of type ${type} belongs to a workspace; name it with --workspace <id>`,
        );
      const more = {
        ...(workspace !== undefined && { environment_id: workspace }),
        ...(role !== undefined && { role }),
      };
      writeFields(terminal(), await api().request('POST', path(), { type, name, ...more }));
    });
  keys
    .command('rotate')
    .argument('<id>', 'id of the credential', positiveInteger)
    .description('gives a key a new secret, shown once; the old secret ends within a second')
    .action(async (id: number) => {
      writeFields(terminal(), await api().request('POST', path(`/${id}/rotate`)));
    });
  keys
    .command('revoke')
    .argument('<id>', 'id of the credential', positiveInteger)
    .description('revokes a key within a second; this cannot be undone')
    .action(async (id: number) => {
      writeFields(terminal(), await api().request('DELETE', path(`/${id}`)));
    });
}
