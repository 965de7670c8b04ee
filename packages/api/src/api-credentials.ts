/**
 * Credentials of an account: what intake, the app API and this API are called with. Listed, made,
 * rotated, revoked; a secret is in the answer that made it and nowhere else. Nobody gives more than they have
 * (`credential-reach.ts`).
 */
import type { Account } from '@sluice/database/accounts';
import {
  type Credential,
  type CredentialKind,
  type MadeCredential,
  type NewCredential,
  type ShownSecret,
} from '@sluice/database/api-credentials';
import type { ChangeOrigin } from '@sluice/database/audit-logs';
import { CREDENTIAL_COUNT_MAX } from '@sluice/domain/account';
import { INTEGER_MAX } from '@sluice/domain/identifiers';
import { newKey, newServiceAccountToken, type Secret } from '@sluice/platform/secrets';
import { z } from 'zod';
import { accountCallerOf, originOf } from './account-guard.ts';
import {
  credential,
  credentialResponse,
  credentialToWire,
  KINDS,
  madeResponse,
  type NewCredentialInput,
  newCredentialInput,
  reachOf,
} from './api-credential-fields.ts';
import { integerInQuery } from './audit-log-filters.ts';
import { refuseBeyond } from './credential-reach.ts';
import { sendProblem } from './error-handling.ts';
import {
  atLimit,
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  forbidden,
  idInPath,
  missing,
  unprocessable,
} from './fields.ts';
import { limitReached, notFound, validationFailed } from './problem.ts';
import type { ApiServer } from './server.ts';

export interface CredentialDependencies {
  readonly listCredentials: (
    accountId: number,
    environmentId: number | undefined,
    nowMs: number,
    limit: number,
  ) => Promise<Credential[]>;
  readonly findCredential: (
    accountId: number,
    credentialId: number,
  ) => Promise<Credential | undefined>;
  readonly createCredential: (
    accountId: number,
    given: NewCredential,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<MadeCredential | 'too_many' | undefined>;
  readonly rotateCredential: (
    accountId: number,
    credentialId: number,
    secret: ShownSecret,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<MadeCredential | 'revoked' | undefined>;
  readonly revokeCredential: (
    accountId: number,
    credentialId: number,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<Credential | undefined>;
  readonly findAccount: (accountId: number) => Promise<Account | undefined>;
  readonly now: () => number;
}

/** Revoked ones stay for good, and the list has no pages (`account-billing.md` §4). */
const LISTED_MAX = 10_000;
const PATH = '/v1/accounts/:account_id/api_credentials';
/** As the field's site ids and Track keys are: 20 characters, 119 bits. */
const TRACK_KEY_LENGTH = 20;

export function registerCredentials(scope: ApiServer, dependencies: CredentialDependencies): void {
  registerReads(scope, dependencies);
  registerCreate(scope, dependencies);
  registerChanges(scope, dependencies);
}

const readFailures = { ...forbidden, ...missing, ...commonFailures };

function registerReads(scope: ApiServer, dependencies: CredentialDependencies): void {
  scope.get(
    PATH,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'The credentials of an account',
        description: `By id, also revoked and expired ones; at most ${LISTED_MAX}, those in force before the others, and of these the ones made last.`,
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
          ...badRequest,
          ...unprocessable,
          ...readFailures,
        },
      },
    },
    async (request, reply) => {
      const rows = await dependencies.listCredentials(
        accountCallerOf(request).accountId,
        request.query.environment_id,
        dependencies.now(),
        LISTED_MAX,
      );
      return reply.send({ api_credentials: rows.map(credentialToWire) });
    },
  );

  scope.get(
    `${PATH}/:id`,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'A credential',
        params: z.object({ account_id: idInPath, id: idInPath }),
        response: { 200: credentialResponse, ...readFailures },
      },
    },
    async (request, reply) => {
      const row = await dependencies.findCredential(
        accountCallerOf(request).accountId,
        request.params.id,
      );
      if (!row) return sendProblem(request, reply, notFound('credential'));
      return reply.send({ api_credential: credentialToWire(row) });
    },
  );
}

function registerCreate(scope: ApiServer, dependencies: CredentialDependencies): void {
  scope.post(
    PATH,
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
          ...badRequest,
          ...badBody,
          ...atLimit,
          ...unprocessable,
          ...readFailures,
        },
      },
    },
    async (request, reply) => {
      const caller = accountCallerOf(request);
      const given = request.body;
      const kind = KINDS[given.type];
      const nowMs = dependencies.now();
      const reach = reachOf(given);
      if (reach.expiresAt && reach.expiresAt.getTime() <= nowMs) {
        return sendProblem(request, reply, refusedField('expires_at', 'must be in the future'));
      }
      const secret = await makeSecret(dependencies, caller.accountId, kind);
      const made = await dependencies.createCredential(
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

function registerChanges(scope: ApiServer, dependencies: CredentialDependencies): void {
  const params = z.object({ account_id: idInPath, id: idInPath });

  scope.post(
    `${PATH}/:id/rotate`,
    {
      config: {
        access: {
          role: 'account_admin',
          refuse: async (request) => {
            const caller = accountCallerOf(request);
            const { id } = request.params as z.infer<typeof params>;
            const found = await dependencies.findCredential(caller.accountId, id);
            return found && refuseBeyond(caller, found, 'rotated');
          },
        },
      },
      schema: {
        tags: ['credentials'],
        summary: 'Give a credential a new secret',
        description:
          'The old one ends within a second; everything else stays, a site id too. Only of what the token of the call could make.',
        params,
        response: { 200: madeResponse, ...conflicting, ...readFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const found = await dependencies.findCredential(accountId, request.params.id);
      if (!found) return sendProblem(request, reply, notFound('credential'));
      const secret = await makeSecret(dependencies, accountId, found.kind);
      const outcome = await dependencies.rotateCredential(
        accountId,
        request.params.id,
        secret,
        originOf(request),
        dependencies.now(),
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

  scope.delete(
    `${PATH}/:id`,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['credentials'],
        summary: 'Revoke a credential',
        description: 'For ever, within a second, in intake too. It stays in the list.',
        params,
        response: { 200: credentialResponse, ...readFailures },
      },
    },
    async (request, reply) => {
      const row = await dependencies.revokeCredential(
        accountCallerOf(request).accountId,
        request.params.id,
        originOf(request),
        dependencies.now(),
      );
      if (!row) return sendProblem(request, reply, notFound('credential'));
      return reply.send({ api_credential: credentialToWire(row) });
    },
  );
}

const madeToWire = (made: MadeCredential) => ({
  api_credential: credentialToWire(made.credential),
  secret: made.secret.text,
});

/** A sandbox's tokens say so. */
async function makeSecret(
  { findAccount }: Pick<CredentialDependencies, 'findAccount'>,
  accountId: number,
  kind: CredentialKind,
): Promise<Secret> {
  if (kind === 'service_account')
    return newServiceAccountToken((await findAccount(accountId))?.isSandbox === true);
  return kind === 'track' ? newKey(TRACK_KEY_LENGTH) : newKey();
}

const refusedField = (field: string, message: string) =>
  validationFailed([
    { field, reason: 'invalid', message: `${field} ${message}`, source: { pointer: `/${field}` } },
  ]);
