/**
 * The identity provider of an account: read, set, removed.
 *
 * The client secret is written and never shown, and another issuer or client needs another one: otherwise a user who
 * may change the address could have the secret sent to an address of their own. `domain-records.ts` has the proof that
 * an account needs; the operator's own accounts need no proof. As with users, a token that is bound to addresses or
 * expires cannot set one, and the demo has no provider.
 */
import { isDemoAccount } from '@sluice/database/changes/demo-account';
import type { Database } from '@sluice/database/connection/connection';
import {
  deleteIdentityProvider,
  type DomainProof,
  findIdentityProvider,
  type IdentityProvider,
  type ProviderRefusal,
  putIdentityProvider,
} from '@sluice/database/users/identity-providers';
import { clientSecretContext } from '@sluice/domain/accounts/identity-provider';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { refuseBound } from '../accounts/credential-reach.ts';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  accountFailures,
  accountReadFailures,
  badBody,
  conflicting,
  idInPath,
} from '../http/fields.ts';
import { notFound, type Problem, validationFailed } from '../http/problem.ts';
import { providerAnswer, providerInput, type shownProvider } from './provider-fields.ts';
import { domainRecordName, domainRecordText, type ReadTextRecords } from './domain-records.ts';
import { returnOrigin, returnPath } from '../console/return-address.ts';

export interface IdentityProviderEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  readonly now: () => number;
  /** Makes the texts of the records that prove a domain (`API_SECRET`). */
  readonly secret: string;
  readonly consoleUrl?: string;
  readonly operatorAccountIds: readonly number[];
  readonly readTextRecords: ReadTextRecords;
}

const PATH = '/v1/accounts/:account_id/identity_provider';
const tags = ['accounts'];

/** On a scope that `guardAccounts` was called on. */
export function registerIdentityProvider(scope: ApiServer, effects: IdentityProviderEffects): void {
  const { database, encryptedText, now, secret } = effects;
  const refuse = async (request: FastifyRequest): Promise<Problem | undefined> => {
    const caller = accountCallerOf(request);
    const refusal = refuseBound(caller);
    if (refusal) return refusal;
    return (await isDemoAccount(database, caller.accountId)) ? OF_DEMO : undefined;
  };
  const config = { access: { role: 'account_admin', refuse } } as const;
  const params = z.object({ account_id: idInPath });

  const answerOf = (
    request: FastifyRequest,
    accountId: number,
    provider: IdentityProvider | undefined,
  ): z.infer<typeof providerAnswer> => ({
    identity_provider: provider ? providerToWire(provider) : null,
    redirect_uri: `${returnOrigin(effects.consoleUrl, request)}${returnPath(accountId)}`,
    domain_record: {
      name: domainRecordName('<domain>'),
      text: domainRecordText(secret, accountId),
    },
  });

  scope.get(
    PATH,
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags,
        summary: 'The identity provider of an account',
        params,
        response: { 200: providerAnswer, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const provider = await findIdentityProvider(database, accountId);
      return reply.send(answerOf(request, accountId, provider));
    },
  );

  scope.put(
    PATH,
    {
      config,
      schema: {
        tags,
        summary: 'Set the identity provider of an account',
        description:
          'Before the call each new domain proves its owner by the TXT record of `domain_record`. Sessions that the change does not admit end.',
        params,
        body: providerInput,
        response: { 200: providerAnswer, ...accountFailures, ...conflicting, ...badBody },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const given = request.body;
      const proof = await proveDomains(request, accountId, given.email_domains);
      if ('code' in proof) return sendProblem(request, reply, proof);
      const clientSecret =
        given.client_secret &&
        encryptedText.encrypt(given.client_secret, clientSecretContext(accountId));
      const provider = await putIdentityProvider(
        database,
        accountId,
        {
          issuer: given.issuer,
          clientId: given.client_id,
          emailDomains: given.email_domains,
          isRequired: given.required,
          countsAsTwoFactors: given.counts_as_two_factors,
          newUserRole: given.new_user_role,
          newUserEnvironmentIds: given.new_user_environment_ids,
        },
        proof,
        clientSecret,
        originOf(request),
        now(),
      );
      if (typeof provider === 'string') return sendProblem(request, reply, REFUSALS[provider]);
      return reply.send(answerOf(request, accountId, provider));
    },
  );

  scope.delete(
    PATH,
    {
      config,
      schema: {
        tags,
        summary: 'Remove the identity provider of an account',
        description: 'Sessions that it opened end.',
        params,
        response: { 204: z.undefined(), ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      if (!(await deleteIdentityProvider(database, accountId, originOf(request), now())))
        return sendProblem(request, reply, notFound('identity provider'));
      return reply.code(204).send();
    },
  );

  /** Each domain that the provider does not have already must be proved. */
  async function proveDomains(
    request: FastifyRequest,
    accountId: number,
    domains: readonly string[],
  ): Promise<DomainProof | Problem> {
    if (effects.operatorAccountIds.includes(accountId)) return { domains, recordText: null };
    const known = (await findIdentityProvider(database, accountId))?.emailDomains ?? [];
    const wanted = domainRecordText(secret, accountId);
    const proved: string[] = [];
    for (const [place, domain] of domains.entries()) {
      if (known.includes(domain)) continue;
      const name = domainRecordName(domain);
      let texts: readonly string[];
      try {
        texts = await effects.readTextRecords(name);
      } catch (error) {
        request.log.warn(
          { error, accountId },
          'the TXT records of an email domain could not be read; the client was asked to try again',
        );
        return {
          ...refusedDomain(place, domain, `The DNS does not answer for ${name}; try again`),
          code: 'conflict',
        };
      }
      if (!texts.includes(wanted))
        return refusedDomain(
          place,
          domain,
          `Set the TXT record ${name} to ${wanted}, and try again. A new record takes time to be seen`,
        );
      proved.push(domain);
    }
    return { domains: proved, recordText: wanted };
  }
}

function providerToWire(provider: IdentityProvider): z.infer<typeof shownProvider> {
  return {
    issuer: provider.issuer,
    client_id: provider.clientId,
    has_client_secret: provider.clientSecret !== null,
    email_domains: [...provider.emailDomains],
    required: provider.isRequired,
    counts_as_two_factors: provider.countsAsTwoFactors,
    new_user_role: provider.newUserRole,
    new_user_environment_ids: [...provider.newUserEnvironmentIds],
    admin_signed_in_at: provider.adminSignedInAt?.toISOString() ?? null,
    created_at: provider.createdAt.toISOString(),
    updated_at: provider.updatedAt.toISOString(),
  };
}

const refusedDomain = (place: number, domain: string, what: string): Problem =>
  refusedField(
    `email_domains.${place}`,
    `${domain} is not proved. ${what}`,
    `/email_domains/${place}`,
  );

const refusedField = (field: string, message: string, pointer = `/${field}`): Problem =>
  validationFailed([{ field, reason: 'invalid', message, source: { pointer } }]);

const REFUSALS: Readonly<Record<ProviderRefusal, Problem>> = {
  no_account: notFound('account'),
  secret_missing: refusedField(
    'client_secret',
    'client_secret is required: another issuer or client has another one',
  ),
  domain_taken: {
    code: 'conflict',
    message: 'a domain belongs to the identity provider of another account; remove it there first',
  },
  domain_gone: {
    code: 'conflict',
    message: 'a domain was taken out meanwhile, since its TXT record is gone: try again',
  },
  not_tried: {
    code: 'conflict',
    message:
      'the provider cannot be required before a sign-in by it; save it without required, sign in by it as an account_admin, then require it',
  },
  is_required: {
    code: 'conflict',
    message:
      'issuer and client_id can change only if the provider is not required; save it without required first',
  },
  no_workspace: refusedField(
    'new_user_environment_ids',
    'new_user_environment_ids must be workspaces of the account',
  ),
};

const OF_DEMO: Problem = {
  code: 'forbidden',
  message:
    'the demo, which everybody may open, can have no identity provider; use an account of your own',
};
