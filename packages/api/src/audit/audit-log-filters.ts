/**
 * The filters of the audit log.
 *
 * They are in a query and in the body of an export: the same fields, the same rules (`account-billing.md` §4, Audit
 * logs). A filter that cannot apply is refused, and so is an unknown one in the body of an export: if it were ignored,
 * far more would be exported than was asked for.
 */
import type { AuditLogFilter } from '@sluice/database/audit/audit-log-reads';
import { AUDIT_ACTOR_TYPES } from '@sluice/domain/accounts/audit-change';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { parseRfc3339Ms } from '@sluice/domain/parsing/rfc3339';
import { z } from 'zod';
import { text } from '../http/fields.ts';
import { integerInQuery, readFromText } from '../http/text-value.ts';

const TEXT_LENGTH_MAX = 200;
/** The longest text of an IPv6 address, with an IPv4 one inside. */
const ADDRESS_LENGTH_MAX = 45;

const time = (rounding: 'up' | 'down') =>
  readFromText(
    (value) => parseRfc3339Ms(value, rounding),
    'datetime',
    'must be a time that exists, as RFC 3339 writes it: 2026-03-01T12:00:00Z',
  );

/** All but the ids, which are texts in a query and numbers in a body. */
const filterFields = {
  actor_type: z.enum(AUDIT_ACTOR_TYPES).optional().meta({
    description:
      'The kind of the actor. A key of a workspace is a `service_account`, and a change that no call made is of the `system`.',
  }),
  ip_addr: text(ADDRESS_LENGTH_MAX)
    .optional()
    .meta({ description: 'The address begins with this text: `10.0.` finds 10.0.1.2.' }),
  start_time: time('up').optional().meta({ description: 'Not before; RFC 3339.' }),
  end_time: time('down').optional().meta({ description: 'Not after; RFC 3339.' }),
  object_type: text(TEXT_LENGTH_MAX)
    .optional()
    .meta({ description: 'A type that `…/audit_logs/field_options` lists.' }),
  object_id: text(TEXT_LENGTH_MAX).optional().meta({ description: 'Needs `object_type`.' }),
  action: z
    .enum(['created', 'updated', 'deleted'])
    .optional()
    .meta({ description: 'Needs `object_type` or `object_id`.' }),
  attribute_name: text(TEXT_LENGTH_MAX).optional().meta({
    description: 'An attribute that was changed. Needs `object_type` or `object_id`.',
  }),
};

const actor = { description: 'The actor that made the change.' };
const session = { description: 'The session of the console that the call was made in.' };
const credential = { description: 'The key or token that the call was made with.' };

/** For a query. */
export const filterQuery = {
  ...filterFields,
  user_id: integerInQuery(1, INTEGER_MAX).optional().meta(actor),
  service_account_id: integerInQuery(1, INTEGER_MAX).optional().meta(actor),
  credential_id: integerInQuery(1, INTEGER_MAX).optional().meta(credential),
  session_id: integerInQuery(1, INTEGER_MAX).optional().meta(session),
};

/** For a body. */
export const filterBody = {
  ...filterFields,
  user_id: z.int().min(1).max(INTEGER_MAX).optional().meta(actor),
  service_account_id: z.int().min(1).max(INTEGER_MAX).optional().meta(actor),
  credential_id: z.int().min(1).max(INTEGER_MAX).optional().meta(credential),
  session_id: z.int().min(1).max(INTEGER_MAX).optional().meta(session),
};

type FilterFields = z.infer<z.ZodObject<typeof filterBody>>;

/** The rules between fields; each names the field that is wrong. For `superRefine`. */
export function checkFilter(given: FilterFields, context: z.RefinementCtx): void {
  const refuse = (field: keyof FilterFields, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  const hasType = isGiven(given.object_type);
  const hasId = isGiven(given.object_id);
  if (hasId && !hasType) refuse('object_id', 'needs object_type beside it');
  if (!hasType && !hasId) {
    for (const field of ['action', 'attribute_name'] as const) {
      if (given[field] !== undefined) refuse(field, 'needs object_type or object_id beside it');
    }
  }
  const { start_time: startMs, end_time: endMs } = given;
  if (startMs !== undefined && endMs !== undefined && startMs > endMs)
    refuse('start_time', 'must not be after end_time');
}

/** Clients that build queries from empty values send them empty. */
const isGiven = (value: string | undefined): value is string => value !== undefined && value !== '';

export function toFilter(given: FilterFields): AuditLogFilter {
  return {
    actorType: given.actor_type,
    userId: given.user_id,
    serviceAccountId: given.service_account_id,
    credentialId: given.credential_id,
    sessionId: given.session_id,
    // Addresses are kept in lower case.
    ipAddrPrefix: given.ip_addr === '' ? undefined : given.ip_addr?.toLowerCase(),
    startMs: given.start_time,
    endMs: given.end_time,
    objectType: isGiven(given.object_type) ? given.object_type : undefined,
    objectId: isGiven(given.object_id) ? given.object_id : undefined,
    action: given.action,
    attributeName: isGiven(given.attribute_name) ? given.attribute_name : undefined,
  };
}
