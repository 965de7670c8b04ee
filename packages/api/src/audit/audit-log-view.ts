/** The audit log on the wire (`account-conventions.md` §4.4). Pure. */
import { AUDIT_ACTOR_TYPES } from '@sluice/domain/accounts/audit-change';
import { AUDIT_OBJECTS } from '@sluice/domain/accounts/audit-registry';
import { z } from 'zod';
import { instant } from '../http/fields.ts';

const action = z.enum(['created', 'updated', 'deleted']);

const entryFields = {
  id: z.int().meta({ description: 'Counts the entries of the account, without a gap.' }),
  occurred_at: instant,
  action,
  object_type: z.string(),
  object_id: z.string(),
  object_name: z.string().nullable(),
  actor: z
    .object({
      type: z.enum(AUDIT_ACTOR_TYPES),
      user_id: z.int().nullable(),
      service_account_id: z.int().nullable(),
      name: z.string().nullable().meta({
        description: 'The current name; the name of the key if the actor has no other name.',
      }),
      email: z.string().nullable(),
    })
    .meta({ id: 'AuditLogActor' }),
  ip_addr: z.string().nullable(),
  user_agent: z.string().nullable(),
  credential_id: z
    .int()
    .nullable()
    .meta({ description: 'The key or token of the call; null in a session of the console.' }),
  environment_id: z.int().nullable(),
  changed_attributes: z.array(z.string()),
  request_id: z.string().nullable(),
};

export const auditLogList = z
  .object({
    audit_logs: z.array(z.object(entryFields).meta({ id: 'AuditLog' })),
    meta: z.object({
      next_cursor: z
        .int()
        .nullable()
        .meta({ description: 'Give it as `cursor` to get the page after this one.' }),
      has_more: z.boolean(),
      limit: z.int(),
    }),
  })
  .meta({ id: 'AuditLogResponse' });

export const auditLogDetail = z
  .object({
    audit_log: z.object({
      ...entryFields,
      changes: z.array(
        z.object({
          attribute: z.string(),
          from: z.unknown(),
          to: z.unknown(),
          redacted: z.boolean().meta({ description: 'A secret: its values are not kept.' }),
        }),
      ),
      context: z.object({
        location: z.string().nullable(),
        credential_id: z.int().nullable(),
        session_id: z.int().nullable().meta({
          description: 'The session of the console; null for a key, a token and the portal.',
        }),
        run_id: z.string().nullable(),
        portal_link_id: z.string().nullable(),
      }),
      hash: z.string().meta({ description: 'SHA-256 of the entry and of `prev_hash`.' }),
      prev_hash: z.string().meta({ description: '`hash` of the entry before.' }),
    }),
  })
  .meta({ id: 'AuditLogDetailResponse' });

export const fieldOptions = z
  .object({
    object_types: z.array(
      z.object({ object_type: z.string(), label: z.string(), fields: z.array(z.string()) }),
    ),
    actions: z.array(action),
  })
  .meta({ id: 'FieldOptionsResponse' });

/** From the table that entries are written by, so that only fields are offered that entries have. */
export const FIELD_OPTIONS: z.infer<typeof fieldOptions> = {
  object_types: Object.entries(AUDIT_OBJECTS).map(([objectType, { label, fields }]) => ({
    object_type: objectType,
    label,
    fields: Object.keys(fields),
  })),
  actions: action.options,
};
