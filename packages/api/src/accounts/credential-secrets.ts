/**
 * Credentials that get a secret: new and rotated ones. Only the answer of the call that made the secret has it. A token
 * cannot create a credential with more rights than its own (`credential-reach.ts`).
 *
 * Beside `api-credentials.ts`, which lists and revokes them.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findAccount } from '@sluice/database/accounts/accounts';
import {
  type MadeCredential,
  createCredential,
  rotateCredential,
} from '@sluice/database/accounts/api-credential-changes';
import { type CredentialKind, findCredential } from '@sluice/database/accounts/api-credentials';
import { CREDENTIAL_COUNT_MAX } from '@sluice/domain/accounts/account';
import { newKey, newServiceAccountToken, type Secret } from '@sluice/platform/secrets/secrets';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import {
  CREDENTIALS_PATH,
  credentialToWire,
  KINDS,
  madeResponse,
  type NewCredentialInput,
  newCredentialInput,
  reachOf,
} from './api-credential-fields.ts';
import { refuseBeyond } from './credential-reach.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  accountFailures,
  accountReadFailures,
  atLimit,
  badBody,
  conflicting,
  idInPath,
} from '../http/fields.ts';
import { limitReached, notFound, validationFailed } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface CredentialEffects {
  readonly database: Database;
  readonly now: () => number;
}

/** As long as is usual for site ids and Track keys: 20 characters, 119 bits. */
const TRACK_KEY_LENGTH = 20;

export function registerCredentialSecrets(scope: ApiServer, effects: CredentialEffects): void {
  registerCreate(scope, effects);
  registerRotation(scope, effects);
}

function registerCreate(scope: ApiServer, { database, now }: CredentialEffects): void {
  scope.post(
    CREDENTIALS_PATH,
    {
      config: {
        access: {
          role: 'account_admin',
          refuse: (request) =>
            refuseBeyond(
              accountCallerOf(request),
              reachOf(request.body as NewCredentialInput),
              'made',
            ),
        },
      },
      schema: {
        tags: ['credentials'],
        summary: 'Make a credential',
        description: `It works within a second. Only with scopes that the token of the call has, within its addresses, and expiring no later than it does. At most ${CREDENTIAL_COUNT_MAX} in force a workspace, and as many of type service_account an account.`,
        params: z.object({ account_id: idInPath }),
        body: newCredentialInput,
        response: {
          200: madeResponse,
          ...badBody,
          ...atLimit,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const caller = accountCallerOf(request);
      const given = request.body;
      const kind = KINDS[given.type];
      const nowMs = now();
      const reach = reachOf(given);
      if (reach.expiresAt && reach.expiresAt.getTime() <= nowMs) {
        return sendProblem(request, reply, refusedField('expires_at', 'must be in the future'));
      }
      const secret = await makeSecret(database, caller.accountId, kind);
      const made = await createCredential(
        database,
        caller.accountId,
        {
          kind,
          name: given.name,
          environmentId: given.environment_id ?? null,
          siteId: kind === 'track' ? newKey(TRACK_KEY_LENGTH).text : null,
          role: kind === 'service_account' ? (given.role ?? 'member') : null,
          isReadOnly: given.read_only ?? false,
          ...reach,
          secret,
        },
        originOf(request),
        nowMs,
      );
      if (made === 'too_many') {
        const whose = kind === 'service_account' ? 'account' : 'workspace';
        return sendProblem(
          request,
          reply,
          limitReached(`the ${whose}`, 'credentials in force', CREDENTIAL_COUNT_MAX),
        );
      }
      if (!made) {
        const problem = refusedField('environment_id', 'must be a workspace of the account');
        return sendProblem(request, reply, problem);
      }
      return reply.send(madeToWire(made));
    },
  );
}

function registerRotation(scope: ApiServer, { database, now }: CredentialEffects): void {
  const params = z.object({ account_id: idInPath, id: idInPath });

  scope.post(
    `${CREDENTIALS_PATH}/:id/rotate`,
    {
      config: {
        access: {
          role: 'account_admin',
          refuse: async (request) => {
            const caller = accountCallerOf(request);
            const { id } = request.params as z.infer<typeof params>;
            const found = await findCredential(database, caller.accountId, id);
            return found && refuseBeyond(caller, found, 'rotated');
          },
        },
      },
      schema: {
        tags: ['credentials'],
        summary: 'Give a credential a new secret',
        description:
          'The old secret ends within a second; all other fields stay, also the site id. The token of the call must have the right to create such a credential.',
        params,
        response: { 200: madeResponse, ...conflicting, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const found = await findCredential(database, accountId, request.params.id);
      if (!found) return sendProblem(request, reply, notFound('credential'));
      const secret = await makeSecret(database, accountId, found.kind);
      const outcome = await rotateCredential(
        database,
        accountId,
        request.params.id,
        secret,
        originOf(request),
        now(),
      );
      if (!outcome) return sendProblem(request, reply, notFound('credential'));
      if (outcome === 'revoked') {
        return sendProblem(request, reply, {
          code: 'conflict',
          message: 'the credential is revoked; make a new one',
        });
      }
      return reply.send(madeToWire(outcome));
    },
  );
}

const madeToWire = (made: MadeCredential) => ({
  api_credential: credentialToWire(made.credential),
  secret: made.secret.text,
});

/** A sandbox's tokens have their own prefix. */
async function makeSecret(
  database: Database,
  accountId: number,
  kind: CredentialKind,
): Promise<Secret> {
  if (kind === 'service_account')
    return newServiceAccountToken((await findAccount(database, accountId))?.isSandbox === true);
  return kind === 'track' ? newKey(TRACK_KEY_LENGTH) : newKey();
}

const refusedField = (field: string, message: string) =>
  validationFailed([
    { field, reason: 'invalid', message: `${field} ${message}`, source: { pointer: `/${field}` } },
  ]);
