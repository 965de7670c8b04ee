/**
 * The startup program: applications of startups, which become one analytics event each, and of
 * partners, which the operator's staff decide on (`account-conventions.md` §4.2).
 */
import type { Database } from '@sluice/database/connection/connection';
import { createHash } from 'node:crypto';
import {
  type Partner,
  decidePartner,
  insertPartner,
  listApprovedPartners,
  submitStartupApplication,
} from '@sluice/database/accounts/partners';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import { z } from 'zod';
import { email, name } from './account-fields.ts';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  forbidden,
  instant,
  missing,
  text,
  tooMany,
  unprocessable,
} from '../http/fields.ts';
import { heldCallOf } from '../http/idempotency.ts';
import { notFound, type Problem, validationFailed } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { webAddress } from '../http/url-field.ts';

export interface StartupProgramEffects {
  readonly database: Database;
  readonly newId: () => string;
  readonly now: () => number;
}

const HOUR_MS = 3_600_000;
const APPLICATIONS_PER_HOUR_AND_IP = 30;
/** The list changes when somebody decides on a partner. */
const PARTNERS_CACHE = 'public, max-age=300';

/** `pre_spec` and `spec` are the spec page's names of the two seed rounds. */
const FUNDING_STAGES = [
  'bootstrapped',
  'pre_seed',
  'seed',
  'pre_spec',
  'spec',
  'series_a',
  'later',
] as const;

const money = z.strictObject({
  amount: z.int().min(0).max(Number.MAX_SAFE_INTEGER).meta({ description: 'Minor units.' }),
  currency: z.string().regex(/^[a-z]{3}$/, 'must be an ISO 4217 code in lower case'),
});

const startupApplication = z
  .strictObject({
    email,
    first_name: name,
    last_name: name,
    company_name: name,
    website: webAddress,
    partner_id: text(100)
      .nullable()
      .default(null)
      .meta({ description: 'One of the approved partners; null for no partner.' }),
    funding_stage: z.enum(FUNDING_STAGES),
    total_funding: money.optional(),
    employee_count: z.int().min(0).max(10_000_000).optional(),
    founded_on: z.iso.date({ error: 'must be a day that exists, as in 2026-03-01' }).optional(),
    referral_source: name.optional(),
  })
  .meta({
    id: 'StartupApplicationRequest',
    requestExamples: [
      {
        email: 'ada@example.com',
        first_name: 'Ada',
        last_name: 'Lovelace',
        company_name: 'Engines',
        website: 'https://engines.example',
        partner_id: null,
        funding_stage: 'seed',
        total_funding: { amount: 100_000_000, currency: 'usd' },
        founded_on: '2026-01-31',
      },
    ],
  });

const partnerApplication = z
  .object({
    partner_application: z.object({
      id: z.string(),
      status: z.enum(['pending', 'approved', 'rejected']),
      created_at: instant,
    }),
  })
  .meta({ id: 'PartnerApplicationResponse' });

const failures = { ...badRequest, ...badBody, ...unprocessable, ...tooMany, ...commonFailures };

/** The routes that need no credentials. */
export function registerStartupProgram(
  scope: ApiServer,
  { database, now, newId }: StartupProgramEffects,
): void {
  const applications = new CallLimit({
    name: 'application from',
    countMax: APPLICATIONS_PER_HOUR_AND_IP,
    windowMs: HOUR_MS,
    now,
    takeCalls: takeCallsIn(database),
  });
  const tooManyFrom = async (ip: string): Promise<Problem | undefined> => {
    const { isExceeded, resetSeconds } = await applications.take(callerNetwork(ip));
    if (!isExceeded) return undefined;
    const message =
      'too many applications from this address; try again after the time in Retry-After';
    return { code: 'rate_limited', message, retryAfterSeconds: resetSeconds };
  };

  scope.post(
    '/v1/account_signup/startup_application',
    {
      schema: {
        tags: ['signup'],
        summary: 'Apply for the startup program',
        description:
          'The same company and address again is the same application. `partner_id` is one of the approved partners.',
        security: [],
        body: startupApplication,
        response: { 204: z.null(), ...failures },
      },
    },
    async (request, reply) => {
      const refusal = await tooManyFrom(request.ip);
      if (refusal) return sendProblem(request, reply, refusal);
      const { body } = request;
      const fact = JSON.stringify([body.email.toLowerCase(), body.company_name.toLowerCase()]);
      const key = `startup-${createHash('sha256').update(fact).digest('hex').slice(0, 40)}`;
      const application = { key, partnerId: body.partner_id, payload: body };
      if (!(await submitStartupApplication(database, application, now()))) {
        const detail = {
          field: 'partner_id',
          reason: 'unsupported',
          message: 'partner_id must be one of the approved partners, or null',
          source: { pointer: '/partner_id' },
        };
        return sendProblem(request, reply, validationFailed([detail]));
      }
      return reply.code(204).send(null);
    },
  );

  scope.get(
    '/v1/account_signup/startup_partners',
    {
      schema: {
        tags: ['signup'],
        summary: 'The approved partners of the startup program',
        description: 'By name.',
        security: [],
        response: {
          200: z
            .object({
              partners: z.array(
                z.object({ id: z.string(), name: z.string(), logo_url: z.string().nullable() }),
              ),
            })
            .meta({ id: 'StartupPartnersResponse' }),
          ...commonFailures,
        },
      },
    },
    async (_request, reply) => {
      const partners = await listApprovedPartners(database);
      return reply.header('cache-control', PARTNERS_CACHE).send({
        partners: partners.map((partner) => ({
          id: partner.partnerId,
          name: partner.name ?? '',
          logo_url: partner.logoUrl,
        })),
      });
    },
  );

  scope.post(
    '/v1/account_signup/partner_application',
    {
      schema: {
        tags: ['signup'],
        summary: 'Apply to be a partner of the startup program',
        description: 'A partner is listed once it is approved and has a name.',
        security: [],
        body: z
          .strictObject({
            partner: z
              .strictObject({
                name: name.optional(),
                website: webAddress.optional(),
                logo_url: webAddress.optional(),
              })
              .optional(),
          })
          .nullish()
          .meta({
            id: 'PartnerApplicationRequest',
            requestExamples: [{ partner: { name: 'Abe Capital', website: 'https://abe.example' } }],
          }),
        response: { 200: partnerApplication, ...failures },
      },
    },
    async (request, reply) => {
      const refusal = await tooManyFrom(request.ip);
      if (refusal) return sendProblem(request, reply, refusal);
      const given = request.body?.partner;
      const partner = await insertPartner(
        database,
        {
          partnerId: `partner_${newId()}`,
          name: given?.name ?? null,
          website: given?.website ?? null,
          logoUrl: given?.logo_url ?? null,
        },
        now(),
        heldCallOf(request),
      );
      return reply.send(toWire(partner));
    },
  );
}

/** The route of the operator's staff; on a guarded scope. */
export function registerPartnerDecisions(
  scope: ApiServer,
  { database, now }: StartupProgramEffects,
): void {
  scope.put(
    '/v1/account_signup/partner_application/:partner_id/status',
    {
      config: { access: { role: 'member', scope: 'partners:write' } },
      schema: {
        tags: ['signup'],
        summary: 'Approve or reject a partner',
        description: 'Possible once. A call without a body approves the partner.',
        params: z.object({ partner_id: z.string().regex(/^[\w-]{1,100}$/) }),
        body: z
          .strictObject({ status: z.enum(['approved', 'rejected']).default('approved') })
          .nullish()
          .meta({ id: 'PartnerStatusRequest', requestExamples: [{ status: 'approved' }] }),
        response: {
          200: partnerApplication,
          ...conflicting,
          ...forbidden,
          ...missing,
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const status = request.body?.status ?? 'approved';
      const outcome = await decidePartner(
        database,
        accountCallerOf(request).accountId,
        request.params.partner_id,
        status,
        originOf(request),
        now(),
      );
      if (!outcome) return sendProblem(request, reply, notFound('partner application'));
      if (outcome === 'decided') {
        return sendProblem(request, reply, {
          code: 'conflict',
          message: 'the application already has another decision; read its state again',
        });
      }
      return reply.send(toWire(outcome));
    },
  );
}

const toWire = (partner: Partner): z.infer<typeof partnerApplication> => ({
  partner_application: {
    id: partner.partnerId,
    status: partner.status,
    created_at: partner.createdAt.toISOString(),
  },
});
