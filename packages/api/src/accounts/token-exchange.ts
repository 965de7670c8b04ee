/**
 * `POST /v1/service_accounts/oauth/token`: a token for a short-lived access token.
 *
 * The first is a service account's; the second may be narrower (RFC 6749 §4.4, client credentials;
 * `account-conventions.md` §3.1). Failures have the body of every other failure with the `error` of RFC 6749 §5.2
 * beside it, and its status: 400 also for a value that cannot be taken.
 */
import { SCOPES } from '@sluice/domain/accounts/account';
import { z } from 'zod';
import {
  ACCESS_TOKEN_LIFETIME_MS,
  looksLikeAccessToken,
  secretTagOf,
  signAccessToken,
} from '../auth/access-token.ts';
import {
  type AccountGuardEffects,
  createAuthenticate,
  createTokenRate,
} from '../auth/account-guard.ts';
import { handleError, sendProblem } from '../http/error-handling.ts';
import { badBody, badRequest, commonFailures, forbidden, text } from '../http/fields.ts';
import { refuseDemo } from '../auth/demo-guard.ts';
import { isAllowedFrom } from '../auth/ip-allowlist.ts';
import { PROGRAM_WITHOUT_FACTOR } from '../auth/restricted-use.ts';
import type { Problem } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const FIELD_LENGTH_MAX = 1000;

const exchangeInput = z
  .object({
    grant_type: z.literal('client_credentials'),
    client_secret: text(FIELD_LENGTH_MAX).min(1).meta({ description: 'sa_live_… or sa_sandbox_…' }),
    scope: text(FIELD_LENGTH_MAX)
      .default('')
      .meta({
        description: `\`read_only\`, and which of the token's scopes (${SCOPES.join(', ')}) to keep; spaces between. Absent: all that the token may.`,
      }),
  })
  .meta({
    id: 'TokenExchangeInput',
    requestExamples: [
      { grant_type: 'client_credentials', client_secret: 'sa_live_…', scope: 'read_only' },
    ],
  });

const accessToken = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'Seconds.' }),
    scope: z.string(),
  })
  .meta({ id: 'AccessToken' });

interface TokenExchangeEffects extends AccountGuardEffects {
  readonly demoHosts: readonly string[];
}

export function registerTokenExchange(scope: ApiServer, effects: TokenExchangeEffects): void {
  const authenticate = createAuthenticate(effects);
  const countCall = createTokenRate(effects);
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, readForm(String(body))),
  );

  scope.post(
    '/v1/service_accounts/oauth/token',
    {
      schema: {
        tags: ['tokens'],
        summary: 'Exchange a token for a short-lived one',
        description:
          'The access token lives 15 minutes and no longer than the original token, or its secret. Each call that accepts the original token also accepts the access token. The exchange counts among the token’s calls.',
        security: [],
        consumes: ['application/x-www-form-urlencoded', 'application/json'],
        body: exchangeInput,
        response: {
          200: accessToken,
          ...badRequest,
          ...badBody,
          ...forbidden,
          ...commonFailures,
        },
      },
      errorHandler: (error, request, reply) => {
        if (error instanceof RequestRefused)
          void sendProblem(request, reply, inTheirWords(error.problem));
        else void handleError(error, request, reply);
      },
    },
    async (request, reply) => {
      const { client_secret: secret, scope: asked } = request.body;
      const demoRefusal = refuseDemo(request.headers, effects.demoHosts, secret);
      if (demoRefusal) return sendProblem(request, reply, demoRefusal);
      // One access token for another would live for ever.
      const caller = looksLikeAccessToken(secret)
        ? undefined
        : await authenticate(`Bearer ${secret}`);
      if (!caller) {
        return effects.refusedCredentials.refuse(request, reply, secret, {
          code: 'unauthorized',
          message: 'unauthorized: client_secret is not a token in force',
          extensions: { error: 'invalid_client' },
        });
      }
      const refusal = await countCall(reply, caller.credentialId);
      if (refusal) return sendProblem(request, reply, refusal);
      if (!isAllowedFrom(request.ip, caller.ipAllowlist))
        return effects.refusedCredentials.refuse(request, reply, secret, {
          code: 'ip_not_allowed',
          message:
            'the token may not be used from this address; use an address of its ip_allowlist',
          extensions: { error: 'unauthorized_client' },
        });
      if (caller.isFactorMissing)
        return sendProblem(request, reply, {
          ...PROGRAM_WITHOUT_FACTOR,
          extensions: { error: 'unauthorized_client' },
        });
      const words = asked.split(' ').filter((word) => word !== '');
      const wanted = words.filter((word) => word !== 'read_only');
      const unknown = wanted.filter((word) => !caller.scopes.includes(word));
      if (unknown.length > 0) {
        const message = `scope has values that the token does not have (${unknown.join(' ')}); leave them out`;
        return sendProblem(request, reply, {
          code: 'invalid_request',
          message,
          details: [
            { field: 'scope', reason: 'unsupported', message, source: { pointer: '/scope' } },
          ],
          extensions: { error: 'invalid_scope' },
        });
      }
      const isReadOnly = caller.isReadOnly || words.includes('read_only');
      const scopes = words.length === 0 ? caller.scopes : wanted;
      const { accountId, credentialId, secretHash } = caller;
      return reply.header('pragma', 'no-cache').send({
        access_token: signAccessToken(
          effects.secret,
          { accountId, credentialId, secretTag: secretTagOf(secretHash), isReadOnly, scopes },
          effects.now(),
        ),
        token_type: 'Bearer' as const,
        expires_in: ACCESS_TOKEN_LIFETIME_MS / 1000,
        scope: [...(isReadOnly ? ['read_only'] : []), ...scopes].join(' '),
      });
    },
  );
}

/**
 * A parameter that comes twice is refused (RFC 6749 §3.2): it becomes a list, which is no text. Read in one pass:
 * anybody may send thousands of names, and searching all of them for each would take seconds.
 */
function readForm(body: string): Record<string, string | string[]> {
  const form = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(body)) {
    const before = form.get(name);
    if (before === undefined) form.set(name, value);
    else if (typeof before === 'string') form.set(name, [before, value]);
    else before.push(value);
  }
  return Object.fromEntries(form);
}

function inTheirWords(problem: Problem): Problem {
  const isOtherGrant = problem.details?.some(
    ({ field, reason }) => field === 'grant_type' && reason === 'unsupported',
  );
  return {
    ...problem,
    code: problem.code === 'validation_failed' ? 'invalid_request' : problem.code,
    extensions: { error: isOtherGrant ? 'unsupported_grant_type' : 'invalid_request' },
  };
}
