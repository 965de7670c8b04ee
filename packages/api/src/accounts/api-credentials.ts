/**
 * Credentials of an account for intake, the app API and this API. Listed and revoked here; made and rotated in
 * `credential-secrets.ts`, whose answers alone have a secret.
 */
import { revokeCredential } from '@sluice/database/accounts/api-credential-changes';
import { findCredential, listCredentials } from '@sluice/database/accounts/api-credentials';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import {
  credential,
  credentialResponse,
  CREDENTIALS_PATH,
  credentialToWire,
} from './api-credential-fields.ts';
import { integerInQuery } from '../http/text-value.ts';
import { registerCredentialSecrets, type CredentialEffects } from './credential-secrets.ts';
import { sendProblem } from '../http/error-handling.ts';
import { accountFailures, accountReadFailures, idInPath } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

/** Revoked ones stay for good, and the list has no pages (`account-billing.md` §4). */
const LISTED_MAX = 10_000;

export function registerCredentials(scope: ApiServer, effects: CredentialEffects): void {
  registerReads(scope, effects);
  registerCredentialSecrets(scope, effects);
  registerRevocation(scope, effects);
}

function registerReads(scope: ApiServer, { database, now }: CredentialEffects): void {
  scope.get(
    CREDENTIALS_PATH,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'The credentials of an account',
        description: `In the order of their ids, with revoked and expired ones; at most ${LISTED_MAX}. If there are more, credentials in force precede the others, and newer ones precede older ones.`,
        params: z.object({ account_id: idInPath }),
        querystring: z.object({
          environment_id: integerInQuery(1, INTEGER_MAX)
            .optional()
            .meta({ description: 'Of this workspace only.' }),
        }),
        response: {
          200: z
            .object({ api_credentials: z.array(credential) })
            .meta({ id: 'ApiCredentialsResponse' }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const rows = await listCredentials(
        database,
        accountCallerOf(request).accountId,
        request.query.environment_id,
        now(),
        LISTED_MAX,
      );
      return reply.send({ api_credentials: rows.map(credentialToWire) });
    },
  );

  scope.get(
    `${CREDENTIALS_PATH}/:id`,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'A credential',
        params: z.object({ account_id: idInPath, id: idInPath }),
        response: { 200: credentialResponse, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const row = await findCredential(
        database,
        accountCallerOf(request).accountId,
        request.params.id,
      );
      if (!row) return sendProblem(request, reply, notFound('credential'));
      return reply.send({ api_credential: credentialToWire(row) });
    },
  );
}

function registerRevocation(scope: ApiServer, { database, now }: CredentialEffects): void {
  scope.delete(
    `${CREDENTIALS_PATH}/:id`,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'Revoke a credential',
        description: 'For ever, within a second, in intake too. It stays in the list.',
        params: z.object({ account_id: idInPath, id: idInPath }),
        response: { 200: credentialResponse, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const row = await revokeCredential(
        database,
        accountCallerOf(request).accountId,
        request.params.id,
        originOf(request),
        now(),
      );
      if (!row) return sendProblem(request, reply, notFound('credential'));
      return reply.send({ api_credential: credentialToWire(row) });
    },
  );
}
