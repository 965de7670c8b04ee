/**
 * Signing in to the console by the identity provider of an account: `/console/session/provider`. The console's own
 * interface, which the reference leaves out.
 *
 *   email → is there a provider for its domain? → begin: a cookie, and the address of the provider → the person
 *   signs in there → the page at `/sign-in/{account_id}` → finish with the cookie and the provider's answer → a session
 *
 * An answer for a domain does not show whether the address is a user's. State, nonce and PKCE's verifier are made from
 * two secrets, one of which only the browser that begins has. So values from an address bar, or of a sign-in that was
 * begun elsewhere, open no session, and a link cannot sign a person in as another one. The provider's code goes only to the
 * token endpoint of the provider that was begun with: the path names the account. Back at the page, the browser shows the
 * screen that it had asked for, a path of ours, kept beside the state. No answer leads to another address from a caller.
 */
import type { Database } from '@sluice/database/connection/connection';
import { recordFailedSignIn } from '@sluice/database/users/failed-sign-ins';
import {
  findIdentityProvider,
  findProviderOfDomain,
  type IdentityProvider,
} from '@sluice/database/users/identity-providers';
import {
  beginProviderSignIn,
  type BegunSignIn,
  openProviderSession,
  type ProviderRefused,
  takeProviderSignIn,
} from '@sluice/database/users/provider-openings';
import { findUserOfEmail } from '@sluice/database/users/users';
import {
  clientSecretContext,
  domainOfEmail,
  judgeClaims,
} from '@sluice/domain/accounts/identity-provider';
import { safeReturnPath } from '@sluice/domain/accounts/return-path';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { email, int32, name } from '../accounts/account-fields.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import {
  newSessionCookie,
  readSignInCookie,
  setSignInCookieHeader,
} from '../auth/session-cookie.ts';
import type { ReadSession } from '../auth/session-door.ts';
import { beginSession } from '../console/begin-session.ts';
import { callOf, HIDDEN } from '../console/console-call.ts';
import { encryptIdToken } from '../console/kept-id-token.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import type { Problem } from '../http/problem.ts';
import type { ProviderClaims, ProviderClient, ProviderFailure } from './provider-client.ts';
import { originOfCall, returnOrigin, returnPath } from '../console/return-address.ts';

export interface ProviderSignInEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  readonly providers: ProviderClient;
  readonly now: () => number;
  readonly consoleUrl?: string;
}

const HOUR_MS = 3_600_000;
/** Of an address: looking up, beginning and finishing are three. */
const TRIES_PER_HOUR_AND_IP = 300;
const SECRET_SIZE_BYTES = 32;

const secretText = z
  .string()
  .regex(/^[\w-]{43}$/, 'is not the state of a sign-in; begin the sign-in again');
const answerInput = z.strictObject({
  account_id: int32,
  state: secretText,
  code: z.string().min(1).max(4096),
  iss: z.string().min(1).max(2048).optional(),
});

export function registerProviderSignIn(
  scope: ApiServer,
  effects: ProviderSignInEffects,
  readSession: ReadSession,
): void {
  const { database, encryptedText, providers, now, consoleUrl } = effects;
  const tries = new CallLimit({
    name: 'provider sign-in from',
    countMax: TRIES_PER_HOUR_AND_IP,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });
  const refuseTry = async (request: FastifyRequest): Promise<Problem | undefined> => {
    const { isExceeded, resetSeconds } = await tries.take(callerNetwork(request.ip));
    return isExceeded ? { ...TOO_MANY, retryAfterSeconds: resetSeconds } : undefined;
  };
  const schema = { ...HIDDEN, body: z.strictObject({ email }) };
  // A path that is not one of ours does not prevent a sign-in: it leads to the first screen.
  const beginning = z.strictObject({ email, return_path: z.string().max(8_192).optional() });

  scope.post('/console/session/provider', { schema }, async (request, reply) => {
    const refusal = await refuseTry(request);
    if (refusal) return sendProblem(request, reply, refusal);
    const provider = await findProviderOfDomain(database, domainOfEmail(request.body.email));
    return reply.send({
      provider: provider
        ? { name: new URL(provider.issuer).host, required: provider.isRequired }
        : null,
    });
  });

  scope.post(
    '/console/session/provider/begin',
    { schema: { ...HIDDEN, body: beginning } },
    async (request, reply) => {
      const refusal = await refuseTry(request);
      if (refusal) return sendProblem(request, reply, refusal);
      const origin = returnOrigin(consoleUrl, request);
      if (origin !== originOfCall(request))
        return sendProblem(request, reply, {
          code: 'conflict',
          message: `an identity provider leads back to ${origin}: open the console there`,
        });
      const found = await findProviderOfDomain(database, domainOfEmail(request.body.email));
      const provider = found && (await findIdentityProvider(database, found.accountId));
      if (!provider) return sendProblem(request, reply, NO_PROVIDER);
      const { accountId } = provider;
      const browserSecret = randomBytes(SECRET_SIZE_BYTES).toString('base64url');
      const state = randomBytes(SECRET_SIZE_BYTES).toString('base64url');
      const begun = await providers.begin(
        provider,
        { ...secretsOf(browserSecret), redirectUri: origin + returnPath(accountId), state },
        request.body.email,
      );
      if (begun.outcome !== 'begun') return refuseByProvider(request, reply, accountId, begun);
      const hashes = { stateHash: hashSecret(state), browserHash: hashSecret(browserSecret) };
      const screen = safeReturnPath(request.body.return_path ?? '');
      if (!(await beginProviderSignIn(database, { ...provider, ...hashes, returnPath: screen })))
        return sendProblem(request, reply, NO_PROVIDER);
      return reply
        .header('set-cookie', setSignInCookieHeader(request, browserSecret))
        .send({ url: begun.url });
    },
  );

  scope.post(
    '/console/session/provider/finish',
    { schema: { ...HIDDEN, body: answerInput } },
    async (request, reply) => {
      const refusal = await refuseTry(request);
      if (refusal) return sendProblem(request, reply, refusal);
      const { account_id: accountId, state, code, iss } = request.body;
      const browserSecret = readSignInCookie(request);
      if (browserSecret === undefined) return sendProblem(request, reply, NOT_BEGUN_HERE);
      const hashes = { stateHash: hashSecret(state), browserHash: hashSecret(browserSecret) };
      const begun = await takeProviderSignIn(database, { accountId, ...hashes });
      if (!begun) return sendProblem(request, reply, NOT_BEGUN_HERE);
      // It is over, however it ends.
      void reply.header('set-cookie', setSignInCookieHeader(request));
      const provider = await findIdentityProvider(database, accountId);
      if (provider?.issuer !== begun.issuer || provider.clientId !== begun.clientId)
        return sendProblem(request, reply, REFUSALS.changed);
      if (provider.clientSecret === null) return sendProblem(request, reply, NO_SECRET);
      const clientSecret = encryptedText.decrypt(
        provider.clientSecret,
        clientSecretContext(accountId),
      );
      const redirectUri = returnOrigin(consoleUrl, request) + returnPath(accountId);
      const finished = await providers.finish(
        { issuer: begun.issuer, clientId: begun.clientId, clientSecret },
        { ...secretsOf(browserSecret), redirectUri, state },
        { code, ...(iss !== undefined && { iss }) },
      );
      if (finished.outcome !== 'verified')
        return refuseByProvider(request, reply, accountId, finished);
      return open(request, reply, begun, finished, provider);
    },
  );

  async function open(
    request: FastifyRequest,
    reply: FastifyReply,
    { returnPath: screen, ...begun }: BegunSignIn,
    { claims, idToken }: { readonly claims: ProviderClaims; readonly idToken: string },
    provider: Pick<IdentityProvider, 'issuer' | 'emailDomains'>,
  ): Promise<FastifyReply> {
    const { accountId } = begun;
    const verdict = judgeClaims(claims, provider);
    const address = email.safeParse(claims.email);
    if (verdict.outcome === 'refused' || !address.success) {
      const reason = verdict.outcome === 'refused' ? verdict.reason : 'no_email';
      const known = address.success && (await findUserOfEmail(database, address.data));
      return refuse(
        request,
        reply,
        accountId,
        reason,
        known && known.accountId === accountId ? known.user.userId : undefined,
      );
    }
    const cookie = newSessionCookie(accountId);
    const outcome = await openProviderSession(
      database,
      {
        ...begun,
        subject: claims.sub,
        email: address.data,
        idToken: encryptIdToken(cookie, idToken),
        firstName: name.safeParse(claims.given_name).data ?? '',
        lastName: name.safeParse(claims.family_name).data ?? '',
      },
      hashSecret(cookie),
      callOf(request),
      now(),
    );
    if (outcome.outcome === 'refused')
      return refuse(request, reply, accountId, outcome.reason, outcome.userId);
    return beginSession(
      effects,
      readSession,
      request,
      reply,
      cookie,
      screen === null ? undefined : { return_path: screen },
    );
  }

  /** Leaves a trace of it: of a user in the audit log, of all in the log. */
  async function refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    accountId: number,
    reason: keyof typeof REFUSALS,
    userId?: number,
  ): Promise<FastifyReply> {
    request.log.warn(
      { accountId, reason },
      'a sign-in by an identity provider was refused; reason names the rule, and the answer has the remedy',
    );
    if (userId !== undefined)
      await recordFailedSignIn(database, { accountId, userId }, 'provider', callOf(request), now());
    return sendProblem(request, reply, REFUSALS[reason]);
  }

  function refuseByProvider(
    request: FastifyRequest,
    reply: FastifyReply,
    accountId: number,
    failure: ProviderFailure,
  ): FastifyReply {
    const { outcome, detail } = failure;
    request.log.warn(
      { accountId, outcome, detail },
      'a sign-in by an identity provider failed; outcome and detail have the reason. Correct its settings unless it is away',
    );
    if (failure.outcome === 'away') return sendProblem(request, reply, AWAY);
    const why = failure.error === null ? '' : ` (${failure.error})`;
    return sendProblem(request, reply, {
      code: 'forbidden',
      message: `the answer of the identity provider was not accepted${why}: begin again, or ask an account_admin`,
    });
  }
}

/** So that they need not be stored. */
function secretsOf(browserSecret: string): { nonce: string; codeVerifier: string } {
  const made = (what: string): string =>
    createHmac('sha256', browserSecret).update(what).digest('base64url');
  return { nonce: made('nonce'), codeVerifier: made('code verifier') };
}

const NO_PROVIDER: Problem = {
  code: 'conflict',
  message: 'there is no identity provider for this address: sign in with a mailed code',
};

const NOT_BEGUN_HERE: Problem = {
  code: 'forbidden',
  message:
    'this sign-in began in another browser, or was used before, or is older than 10 minutes; begin again',
};

const NO_SECRET: Problem = {
  code: 'conflict',
  message: 'the client secret of the identity provider is lost: an account_admin sets it again',
};

const AWAY: Problem = {
  // Not 503, which would count as a failure of ours.
  code: 'conflict',
  message:
    'the identity provider does not answer as it should: try again later, or use a mailed code if your account allows it',
};

const TOO_MANY: Problem = {
  code: 'too_many_attempts',
  message: 'too many sign-ins were tried from this address; try again later',
};

const forbidden = (message: string): Problem => ({ code: 'forbidden', message });

const REFUSALS: Readonly<
  Record<ProviderRefused | 'no_email' | 'unverified' | 'other_domain', Problem>
> = {
  changed: {
    code: 'conflict',
    message: 'the identity provider of the account was changed meanwhile; begin the sign-in again',
  },
  no_user: forbidden('you are not a user of this account; an account_admin can invite you'),
  removed: forbidden('you were removed from this account; an account_admin can invite you again'),
  other_person: forbidden(
    'the identity provider gave this address to another person before; an account_admin can remove that user and invite you',
  ),
  elsewhere: forbidden(
    'this address is a user of another account; sign in there with a mailed code',
  ),
  no_email: forbidden(
    'the identity provider sends no email address for you; its administrator can add it',
  ),
  unverified: forbidden(
    'the identity provider does not send your email address as verified; its administrator can change that',
  ),
  other_domain: forbidden(
    'the identity provider names an email address whose domain is not one of the account; an account_admin can add it',
  ),
};
