/** `sluice keys …`: the credentials of an account, with a token of one of its service accounts. */
import { type components, resultOf } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import { Option } from 'commander';
import { positiveInteger } from '../input/arguments.ts';
import { givenMembers } from '../input/given-members.ts';
import { writeFields, writeRows } from '../output/result.ts';
import type { AccountContext } from './account-commands.ts';

const CREDENTIALS = '/v1/accounts/{account_id}/api_credentials';

type CredentialType = components['schemas']['NewApiCredentialInputInput']['type'];
const ROLES = ['account_admin', 'billing_admin', 'member'] as const;

interface MakeOptions {
  readonly workspace?: number;
  readonly role?: (typeof ROLES)[number];
}

export function addKeyCommands({ program, terminal, api, ofAccount }: AccountContext): void {
  const keys = program
    .command('keys')
    .description('keys of an account: list, make, rotate, revoke');
  const ofCredential = (id: number) => ({ params: { path: { ...ofAccount(), id } } });

  keys
    .command('list')
    .description('lists all keys, without their secrets')
    .action(async () => {
      const { api_credentials: found } = await resultOf(
        api().GET(CREDENTIALS, { params: { path: ofAccount() } }),
      );
      writeRows(
        terminal(),
        found,
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
      new Option('--role <role>', 'role of a service account (member by default)').choices(ROLES),
    )
    .description('makes a key; its secret is shown once')
    .action(async (given: string, name: string, { workspace, role }: MakeOptions) => {
      // The API names the types to a user who gives another one.
      const type = given as CredentialType;
      if (type !== 'service_account' && workspace === undefined)
        throw new AppError(
          'COMMAND_MISUSED',
          `a key of type ${type} belongs to a workspace; name it with --workspace <id>`,
        );
      const body = { type, name, ...givenMembers({ environment_id: workspace, role }) };
      const made = api().POST(CREDENTIALS, { params: { path: ofAccount() }, body });
      writeFields(terminal(), await resultOf(made));
    });
  keys
    .command('rotate')
    .argument('<id>', 'id of the credential', positiveInteger)
    .description('gives a key a new secret, shown once; the old secret ends within a second')
    .action(async (id: number) => {
      const rotated = api().POST(`${CREDENTIALS}/{id}/rotate`, ofCredential(id));
      writeFields(terminal(), await resultOf(rotated));
    });
  keys
    .command('revoke')
    .argument('<id>', 'id of the credential', positiveInteger)
    .description('revokes a key within a second; this cannot be undone')
    .action(async (id: number) => {
      const revoked = api().DELETE(`${CREDENTIALS}/{id}`, ofCredential(id));
      writeFields(terminal(), await resultOf(revoked));
    });
}
