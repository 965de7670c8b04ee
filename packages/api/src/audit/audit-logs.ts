/**
 * The audit log of an account: list, one entry, and the values of its filters (`account-billing.md` §4, Audit logs).
 * Exports are in `audit-log-exports.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findAuditLog, listAuditLogs } from '@sluice/database/audit/audit-log-reads';
import { auditLogToWire, wholeAuditLogToWire } from '@sluice/domain/accounts/audit-entry';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { checkFilter, filterQuery, toFilter } from './audit-log-filters.ts';
import { integerInQuery } from '../http/text-value.ts';
import { auditLogDetail, auditLogList, FIELD_OPTIONS, fieldOptions } from './audit-log-view.ts';
import { sendProblem } from '../http/error-handling.ts';
import { accountReadFailures, badRequest, idInPath, unprocessable } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const tags = ['audit logs'];
const access = { role: 'account_admin' } as const;

const query = z
  .strictObject({
    ...filterQuery,
    limit: integerInQuery(1, LIMIT_MAX)
      .default(LIMIT_DEFAULT)
      .meta({ description: `Entries a page; ${LIMIT_DEFAULT} by default.` }),
    sort_order: z.enum(['asc', 'desc']).default('desc'),
    cursor: integerInQuery(0, INTEGER_MAX).optional().meta({
      description:
        'An id of an entry. The page begins after it if `sort_order` is asc, and before it if it is desc.',
    }),
  })
  .superRefine(checkFilter);

export function registerAuditLogs(
  scope: ApiServer,
  { database }: { readonly database: Database },
): void {
  scope.get(
    '/v1/accounts/:account_id/audit_logs',
    {
      config: { access, mayLag: true },
      schema: {
        tags,
        summary: 'List the audit log',
        description: 'Each entry has the change, its actor and its call; the newest is first.',
        params: z.object({ account_id: idInPath }),
        querystring: query,
        response: { 200: auditLogList, ...badRequest, ...unprocessable, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { limit, sort_order: order, cursor, ...given } = request.query;
      const found = await listAuditLogs(
        readsOf(request, database),
        accountCallerOf(request).accountId,
        toFilter(given),
        // One more than is shown: its presence means that there is another page.
        { order, cursor, limit: limit + 1 },
      );
      const page = found.slice(0, limit);
      const hasMore = found.length > limit;
      return reply.send({
        audit_logs: page.map(auditLogToWire),
        meta: {
          next_cursor: hasMore ? (page.at(-1)?.auditLogId ?? null) : null,
          has_more: hasMore,
          limit,
        },
      });
    },
  );

  scope.get(
    '/v1/accounts/:account_id/audit_log/:audit_log_id',
    {
      config: { access, mayLag: true },
      schema: {
        tags,
        summary: 'Get an entry of the audit log',
        description: 'With the old and the new value of each changed field. Secrets are not kept.',
        params: z.object({ account_id: idInPath, audit_log_id: idInPath }),
        response: { 200: auditLogDetail, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const found = await findAuditLog(
        readsOf(request, database),
        accountCallerOf(request).accountId,
        request.params.audit_log_id,
      );
      return found
        ? reply.send({ audit_log: wholeAuditLogToWire(found) })
        : sendProblem(request, reply, notFound('the entry was'));
    },
  );

  scope.get(
    '/v1/accounts/:account_id/audit_logs/field_options',
    {
      config: { access },
      schema: {
        tags,
        summary: 'List the filters of the audit log',
        params: z.object({ account_id: idInPath }),
        response: { 200: fieldOptions, ...accountReadFailures },
      },
    },
    async (_request, reply) => reply.send(FIELD_OPTIONS),
  );
}
