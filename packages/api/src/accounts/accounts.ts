/** The account of the token: read, its settings, its address, the two-factor requirement, its products. */
import type { Database } from '@sluice/database/connection/connection';
import {
  activateProduct,
  requireTwoFactor,
  updateAccount,
  updateAddress,
} from '@sluice/database/accounts/account-changes';
import { findAccount, findAccountByEnvironment } from '@sluice/database/accounts/accounts';
import { PRODUCTS } from '@sluice/domain/accounts/account';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import { updateAccountInput, updateAddressInput } from './account-fields.ts';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { accountResponse, accountToWire, instantOrNull, productState } from './account-view.ts';
import { sendProblem } from '../http/error-handling.ts';
import { accountFailures, accountReadFailures, badBody, idInPath } from '../http/fields.ts';
import { notFound, validationFailed } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface AccountEffects {
  readonly database: Database;
  readonly catalogue: Pick<Catalogue, 'currency'>;
  readonly now: () => number;
}

const accountInPath = z.object({ account_id: idInPath });
const changeFailures = { ...badBody, ...accountFailures };

/**
 * Any text is accepted here: a path that fails its schema is 404, and an unknown action must not look like an unknown
 * account.
 */
const twoFactorAction = z.string().meta({ enum: ['enable', 'disable'] });

export function registerAccounts(scope: ApiServer, effects: AccountEffects): void {
  const { database, now } = effects;
  registerReads(scope, effects);
  registerSettings(scope, effects);

  scope.post(
    '/v1/accounts/:account_id/2fa_required/:action',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'Require two-factor authentication, or no longer',
        description:
          'If it is required, a user of the console gives a code of an authenticator app after the mailed code. A token then opens no session of the console. A change of it, either way, ends the open sessions with one factor. Programs use tokens as before. A repeated call has no effect.',
        params: z.object({ account_id: idInPath, action: twoFactorAction }),
        response: { 204: z.null().meta({ description: 'Done.' }), ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { action } = request.params;
      if (action !== 'enable' && action !== 'disable')
        return sendProblem(request, reply, {
          code: 'unknown_action',
          message: 'the action must be enable or disable',
        });
      const account = await requireTwoFactor(
        database,
        accountCallerOf(request).accountId,
        action === 'enable',
        originOf(request),
        now(),
      );
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.code(204).send(null);
    },
  );

  scope.post(
    '/v1/accounts/:account_id/activate_product',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'Switch a product on',
        params: accountInPath,
        body: z
          .strictObject({ product: z.enum(PRODUCTS) })
          .meta({ id: 'ActivateProductRequest', requestExamples: [{ product: 'journeys' }] }),
        response: {
          200: z
            .object({
              product: productState,
              activated: z.boolean().meta({ description: 'False: it was on already.' }),
            })
            .meta({ id: 'ActivateProductResponse' }),
          ...changeFailures,
        },
      },
    },
    async (request, reply) => {
      const outcome = await activateProduct(
        database,
        accountCallerOf(request).accountId,
        request.body.product,
        originOf(request),
        now(),
      );
      const row = outcome?.account.products.find((each) => each.product === request.body.product);
      if (!outcome || !row) return sendProblem(request, reply, notFound('account'));
      return reply.send({
        product: {
          product: row.product,
          status: 'active' as const,
          activated_at: instantOrNull(row.activatedAt),
        },
        activated: outcome.wasActivated,
      });
    },
  );
}

function registerReads(scope: ApiServer, { database, catalogue }: AccountEffects): void {
  scope.get(
    '/v1/accounts/:account_id',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['accounts'],
        summary: 'An account',
        params: accountInPath,
        response: { 200: accountResponse, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const account = await findAccount(database, accountCallerOf(request).accountId);
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.send(accountToWire(account, catalogue.currency));
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
        response: { 200: accountResponse, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const account = await findAccountByEnvironment(
        database,
        accountCallerOf(request).accountId,
        request.params.environment_id,
      );
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.send(accountToWire(account, catalogue.currency));
    },
  );
}

function registerSettings(scope: ApiServer, { database, catalogue, now }: AccountEffects): void {
  scope.put(
    '/v1/accounts/:account_id',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'Change settings of an account',
        description:
          'A field that the body leaves out keeps its value. The plan and the two-factor requirement have calls of their own.',
        params: accountInPath,
        body: updateAccountInput,
        response: { 200: accountResponse, ...changeFailures },
      },
    },
    async (request, reply) => {
      const given = request.body.account;
      const outcome = await updateAccount(
        database,
        accountCallerOf(request).accountId,
        {
          ...(given.name !== undefined && { name: given.name }),
          ...(given.timezone !== undefined && { timezone: given.timezone }),
          ...(given.website !== undefined && { website: given.website }),
          ...(given.billing_email !== undefined && { billingEmail: given.billing_email }),
          ...(given.owner_user_id !== undefined && { ownerUserId: given.owner_user_id }),
        },
        originOf(request),
        now(),
      );
      if (!outcome) return sendProblem(request, reply, notFound('account'));
      if (outcome === 'no_such_owner') {
        const detail = {
          field: 'account.owner_user_id',
          reason: 'invalid',
          message: 'account.owner_user_id must be an active user of the account',
          source: { pointer: '/account/owner_user_id' },
        };
        return sendProblem(request, reply, validationFailed([detail]));
      }
      return reply.send(accountToWire(outcome, catalogue.currency));
    },
  );

  scope.post(
    '/v1/accounts/:account_id/address',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'Replace the address of an account',
        params: accountInPath,
        body: updateAddressInput,
        response: { 200: accountResponse, ...changeFailures },
      },
    },
    async (request, reply) => {
      const account = await updateAddress(
        database,
        accountCallerOf(request).accountId,
        request.body.address,
        originOf(request),
        now(),
      );
      if (!account) return sendProblem(request, reply, notFound('account'));
      return reply.send(accountToWire(account, catalogue.currency));
    },
  );
}
