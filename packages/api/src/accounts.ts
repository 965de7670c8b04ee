/** The account of the token: read by its id or by the id of one of its workspaces. */
import type { Account } from '@sluice/database/accounts';
import { z } from 'zod';
import { accountCallerOf } from './account-guard.ts';
import { accountResponse, accountToWire } from './account-view.ts';
import { sendProblem } from './error-handling.ts';
import { commonFailures, forbidden, idInPath, missing } from './fields.ts';
import { notFound } from './problem.ts';
import type { ApiServer } from './server.ts';

export interface AccountDependencies {
  readonly findAccount: (accountId: number) => Promise<Account | undefined>;
  readonly findAccountByEnvironment: (
    accountId: number,
    environmentId: number,
  ) => Promise<Account | undefined>;
}

export function registerAccounts(scope: ApiServer, dependencies: AccountDependencies): void {
  scope.get(
    '/v1/accounts/:account_id',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['accounts'],
        summary: 'An account',
        params: z.object({ account_id: idInPath }),
        response: { 200: accountResponse, ...forbidden, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const account = await dependencies.findAccount(accountCallerOf(request).accountId);
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.send(accountToWire(account));
    },
  );

  scope.get(
    '/v1/account_by_environment/:environment_id',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['accounts'],
        summary: 'The account of a workspace',
        description: 'Of a workspace of your own, also a deleted one.',
        params: z.object({ environment_id: idInPath }),
        response: { 200: accountResponse, ...forbidden, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const account = await dependencies.findAccountByEnvironment(
        accountCallerOf(request).accountId,
        request.params.environment_id,
      );
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.send(accountToWire(account));
    },
  );
}
