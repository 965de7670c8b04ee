/**
 * Signup without a person at a screen: a mailed code, then an account with a token
 * (`account-conventions.md` §4.2, §8).
 *
 * A start is answered the same whether the address is known, unknown or has had its codes, with the
 * same work done: the mail is written later, by `outbox-relay.ts`. A wrong, expired, used or unknown
 * code is one answer too; only a right one may hear that the address has an account.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type SignupLimits,
  createAccount,
  countSignupAttempt,
  startSignup,
} from '@sluice/database/accounts/signups';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import { newKey, newServiceAccountToken } from '@sluice/platform/secrets/secrets';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { ROLES } from '@sluice/domain/accounts/account';
import { z } from 'zod';
import { email, name } from './account-fields.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  forbidden,
  instant,
  tooMany,
  unprocessable,
} from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';
import { heldCallOf } from '../http/idempotency.ts';
import { refuseSignup, type SignupAdmission } from './signup-admission.ts';
import { CODE_LIFETIME_MS, isCode } from './signup-code.ts';
import { sourceOf } from '../serving/call-source.ts';

export interface SignupEffects {
  readonly database: Database;
  readonly secret: string;
  readonly catalogue: Pick<Catalogue, 'currency'>;
  readonly signupAdmission: SignupAdmission;
  readonly now: () => number;
}

const HOUR_MS = 3_600_000;
/**
 * `account-conventions.md` §8. With five tries a code (`database/src/accounts/signups.ts`) the chance to guess an
 * address's code is 15 in a million an hour and at most 104 in a million a day; the stop applies to starts, so the last
 * code before it still has its five tries. The price: a person who knows an address can use up its three codes, and its
 * owner waits out the hour. Replacing codes that were used up by wrong tries would not help the owner: twenty starts
 * and a hundred tries, which one IP address has in an hour, would reach the stop for the whole day.
 */
export const SIGNUP_LIMITS: SignupLimits = {
  startsPerHourAndIp: 20,
  codesPerHourAndEmail: 3,
  failuresPerDayAndEmail: 100,
};
/** Codes that may be tried from one IP address, or one network of IPv6. */
export const TRIES_PER_HOUR_AND_IP = 100;

const failures = { ...badRequest, ...badBody, ...unprocessable, ...tooMany, ...commonFailures };

export function registerSignup(
  scope: ApiServer,
  { database, secret, catalogue, signupAdmission, now }: SignupEffects,
): void {
  const tries = new CallLimit({
    name: 'signup code from',
    countMax: TRIES_PER_HOUR_AND_IP,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });

  scope.post(
    '/v1/account_signup',
    {
      schema: {
        tags: ['signup'],
        summary: 'Start a signup: a 6-digit code is mailed',
        description: 'The answer is the same whether the address has an account or not.',
        security: [],
        body: z
          .strictObject({
            email,
            invitation: z
              .string()
              .max(512)
              .optional()
              .meta({ description: 'Needed if the operator invites (`API_SIGNUP=invitation`).' }),
          })
          .meta({ id: 'SignupAgentStartRequest', requestExamples: [{ email: 'ada@example.com' }] }),
        response: {
          200: z
            .object({
              message: z.string(),
              expires_in: z.int().meta({ description: 'Seconds that the code is good for.' }),
            })
            .meta({ id: 'SignupAgentStartResponse' }),
          ...forbidden,
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const refusal = refuseSignup(signupAdmission, request.body.invitation);
      if (refusal) return sendProblem(request, reply, refusal);
      const outcome = await startSignup(
        database,
        { email: request.body.email, ip: callerNetwork(request.ip) },
        SIGNUP_LIMITS,
        now(),
        heldCallOf(request),
      );
      if (outcome === 'too_many') {
        return sendProblem(request, reply, {
          code: 'rate_limited',
          message: 'too many signups from this address; try again later',
          retryAfterSeconds: HOUR_MS / 1000,
        });
      }
      return reply.send({ message: 'check your email', expires_in: CODE_LIFETIME_MS / 1000 });
    },
  );

  scope.post(
    '/v1/account_signup/code',
    {
      schema: {
        tags: ['signup'],
        summary: 'Complete a signup with the mailed code',
        description:
          'Makes the account, its first workspace, its owner and a service account, whose token is in the answer and nowhere else. A code is good for five tries, ten minutes and one account.',
        security: [],
        body: completeInput,
        response: { 200: completeResponse, ...conflicting, ...failures },
      },
    },
    async (request, reply) => {
      const { isExceeded, resetSeconds } = await tries.take(callerNetwork(request.ip));
      if (isExceeded) {
        return sendProblem(request, reply, {
          code: 'too_many_attempts',
          message: 'too many codes were tried from this address; try again later',
          retryAfterSeconds: resetSeconds,
        });
      }
      const given = request.body;
      const nowMs = now();
      // A repeated call whose account was made but that was not answered has used its code already.
      const signupId = request.heldCall?.isDone
        ? ''
        : await signupOf(database, secret, given, nowMs);
      if (signupId === undefined) return sendProblem(request, reply, INVALID_CODE);

      const token = newServiceAccountToken(given.sandbox);
      const outcome = await createAccount(
        database,
        {
          signupId,
          email: given.email,
          companyName: given.company_name,
          firstName: given.first_name,
          lastName: given.last_name,
          dataCenter: given.data_center,
          currency: catalogue.currency,
          isSandbox: given.sandbox,
          token,
          tokenScopes: ['usage:write'],
          webhookSigningKey: newKey().text,
        },
        {
          ...sourceOf(request),
          requestId: request.id,
          call: heldCallOf(request),
        },
        nowMs,
      );
      if (outcome === 'used') return sendProblem(request, reply, INVALID_CODE);
      if (outcome === 'email_taken') {
        return sendProblem(request, reply, {
          code: 'email_taken',
          message: 'the address already has an account; sign in instead',
        });
      }
      return reply.send({
        account_id: outcome.accountId,
        environment_id: outcome.environmentId,
        user_id: outcome.userId,
        service_account_id: outcome.serviceAccountId,
        token_id: outcome.tokenId,
        token: outcome.token.text,
        token_hint: outcome.token.hint,
        role: outcome.role,
        expires_at: null,
        data_center: given.data_center,
      });
    },
  );
}

/** The signup that the code is right for; counts the attempt. */
async function signupOf(
  database: Database,
  secret: string,
  { email: address, code }: { readonly email: string; readonly code: string },
  nowMs: number,
): Promise<string | undefined> {
  const kept = await countSignupAttempt(database, address, nowMs);
  const compared = kept && { id: kept.signupId, codeHmac: kept.codeHmac };
  return isCode(secret, 'signup code', compared, address, code) ? kept?.signupId : undefined;
}

const INVALID_CODE = {
  code: 'invalid_code',
  message: 'the code is wrong, expired, used, or was tried too often; begin again',
  details: [
    {
      field: 'code',
      reason: 'invalid',
      message: 'the code is wrong, expired, used, or was tried too often; begin again',
      source: { pointer: '/code' },
    },
  ],
} as const;

const completeInput = z
  .strictObject({
    email,
    code: z
      .string()
      .regex(/^\d{6}$/, 'must be six digits')
      .meta({ description: 'The mailed one.' }),
    company_name: name,
    first_name: name,
    last_name: name,
    data_center: z.enum(['us', 'eu']),
    sandbox: z
      .boolean()
      .default(false)
      .meta({ description: 'True makes an account for trials; its tokens are `sa_sandbox_…`.' }),
    terms_accepted: z.literal(true).optional(),
  })
  .meta({
    id: 'SignupAgentCompleteRequest',
    requestExamples: [
      {
        email: 'ada@example.com',
        code: '123456',
        company_name: 'Engines',
        first_name: 'Ada',
        last_name: 'Lovelace',
        data_center: 'eu',
      },
    ],
  });

const completeResponse = z
  .object({
    account_id: z.int(),
    environment_id: z.int(),
    user_id: z.int(),
    service_account_id: z.int(),
    token_id: z.int().meta({ description: 'Of the credential, as the list of them has it.' }),
    token: z.string().meta({ description: 'Shown this once.' }),
    token_hint: z.string(),
    role: z.enum(ROLES).meta({ description: 'Of the token.' }),
    expires_at: instant.nullable(),
    data_center: z.enum(['us', 'eu']),
  })
  .meta({ id: 'SignupAgentCompleteResponse' });
