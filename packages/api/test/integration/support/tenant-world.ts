/** A tenant with one object for every path of the API. */
import { BY_TEST } from '@sluice/database/testing/testing';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { insertImportProblems } from '@sluice/database/imports/import-problems';
import { insertImport } from '@sluice/database/imports/import-changes';
import type { ImportRow } from '@sluice/database/imports/imports';
import { sql } from 'kysely';
import { expect, vi } from 'vitest';
import { type ApiUnderTest } from './api-under-test.ts';
import {
  insertEvent,
  insertPendingPurchase,
  insertPerson,
  insertTestReceipt,
  type Tenant,
} from './inserted-rows.ts';
import { BODIES, type Operation, WORDS_IN_PATHS } from './every-operation.ts';
import { insertExport } from './audit-log-world.ts';
import { recordDrain } from './drained-lane.ts';
import { insertLockedOutUser } from './locked-out-user.ts';
import { insertPreviewRuns } from './usage-world.ts';

const webhookBody = (marker: string) => ({
  name: marker,
  endpoint: `https://${marker}.example`,
  events: ['email_sent'],
  event_type: 'email_sent',
  sequence: 2,
});

export const OBJECT_SEARCH = {
  object_type_id: 1,
  filter: { or: [{ object_attribute: { field: 'object_id', operator: 'exists' } }] },
};

/** A body that the operation takes from a tenant of {@link insertOwned}. */
export const ownedBody = ({ method, path }: Operation, marker: string): object =>
  path === '/v1/objects' ? OBJECT_SEARCH : (BODIES[`${method} ${path}`] ?? webhookBody(marker));

/**
 * Inserts it. @param marker - in every text of its rows.
 *
 * @returns by path parameter, the names of the tenant's own objects.
 */
export async function insertOwned(
  api: ApiUnderTest,
  tenant: Tenant,
  marker: string,
): Promise<Readonly<Record<string, string>>> {
  const { environmentId } = tenant;
  const runId = `run_of_${marker}`;
  await insertPerson(api.database, environmentId, {
    personId: 41,
    id: marker,
    email: `${marker}@example.com`,
    attributes: { a: marker },
  });
  await insertEvent(api.database, environmentId, {
    personId: 41,
    eventId: `${marker}-event`,
    occurredAt: '2026-02-28T10:00:00Z',
  });
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    values (${environmentId}, 51, 1, ${marker}, '{}', now(), now())`.execute(api.database);
  await sql`
    insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
    values (${environmentId}, 41, 51, ${JSON.stringify({ a: marker })}::jsonb, now(), now())`.execute(
    api.database,
  );
  await sql`
    insert into devices (environment_id, person_id, token, platform, attributes, created_at, updated_at)
    values (${environmentId}, 41, ${marker}, 'ios', '{}', now(), now())`.execute(api.database);
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    values (${environmentId}, '2026-02-28', 'invalid', ${marker}, '', 1, now(), now(), 'x')`.execute(
    api.database,
  );
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    key: tenant.key,
    body: webhookBody(marker),
  });
  for (const [path, body] of [
    [`/v1/event_types/${marker}`, { description: marker }],
    [`/v1/feeds/${marker}`, { events: ['email_sent'] }],
  ] as const)
    await api.call('PUT', path, { key: tenant.key, body });
  await appendDeliveries(
    api.database,
    [marker, `${marker}-2`].map((eventId) => ({
      environmentId,
      eventType: 'email_sent',
      eventId,
      objectType: 'email',
      metric: 'sent',
      occurredAtMs: 0,
      data: {},
    })),
  );
  // The first is delivered and can be resent, the second has failed and can be skipped.
  const lane = { environmentId, webhookId: Number(made.json().id) };
  const answered = { responseHead: marker, responseBody: marker };
  const nextProbeAtMs = api.clock.nowMs + 3_600_000;
  await recordDrain(
    api,
    lane,
    { state: 'failing', cursor: 1, attemptedThrough: 2, nextProbeAtMs },
    [
      { ...answered, sequence: 1 },
      { ...answered, sequence: 2, outcome: 'retrying', failure: 'timeout' },
    ],
  );
  const applicationId = `${marker}-app`;
  await sql`
    insert into applications (environment_id, application_id, name)
    values (${environmentId}, ${applicationId}, ${marker})`.execute(api.database);
  const replay = await api.call('POST', `/v1/reporting_webhooks/${lane.webhookId}/replays`, {
    key: tenant.key,
    body: { since: 0 },
  });
  await sql`
    insert into replay_attempts (environment_id, webhook_id, replay_id, sequence, attempt, duration_ms, started_at, outcome, response_body)
    values (${environmentId}, ${lane.webhookId}, ${replay.json().replay.id}, 1, 1, 1, now(), 'delivered', ${marker})`.execute(
    api.database,
  );
  await sql`
    insert into portal_links
      (environment_id, portal_link_id, label, capabilities, theme, code_hash, code_ends_at, ends_at)
    values (${environmentId}, ${`${marker}-link`}, ${marker}, '{view}', '{"color_scheme": "auto"}', '', now(),
            now() + interval '1 day')`.execute(api.database);
  await insertTestReceipt(api.database, tenant.accountId, String(tenant.spareCredentialId));
  const imported = (await insertImport(
    api.database,
    {
      environmentId,
      name: marker,
      description: null,
      identifier: 'id',
      dataToProcess: 'all',
      dataFileUrl: `https://${marker}.example/a.csv`,
      nowMs: api.clock.nowMs,
    },
    BY_TEST,
  )) as ImportRow;
  await insertImportProblems(api.database, imported, [
    {
      severity: 'error',
      rowNumber: 1,
      position: 0,
      column: '',
      code: 'invalid',
      message: marker,
      record: [marker],
    },
  ]);
  const owned: Record<string, string> = {
    import_id: String(imported.importId),
    webhook_id: String(lane.webhookId),
    identifier: marker,
    sequence: '1',
    attempt: '1',
    object_type_id: '1',
    object_id: marker,
    ...WORDS_IN_PATHS,
    account_id: String(tenant.accountId),
    user_id: await insertLockedOutUser(api, tenant, marker),
    id: String(tenant.spareCredentialId),
    // Made with the feed, after the webhook's and the event type's. A has one at most: of its token used on B.
    audit_log_id: '3',
    ...(await insertExport(api, tenant)),
    environment_id: String(environmentId),
    event_id: `${marker}-event`,
    replay_id: String(replay.json().replay.id),
    portal_link_id: `${marker}-link`,
    application_id: applicationId,
    name: marker,
    credit_type: 'llm',
    run_id: runId,
    plan_id: 'premium_month',
    preview_job_id: `${marker}-job`,
  };
  await insertPreviewRuns(api, tenant, [`${marker}-job`]);
  await insertPendingPurchase(api.database, tenant.accountId, runId);
  await untilUseIsRecorded(api, tenant);
  return owned;
}

/** The token's use is written beside its first answer in a minute: later, it would change the compared rows. */
export const untilUseIsRecorded = (
  { database }: Pick<ApiUnderTest, 'database'>,
  { accountId }: Pick<Tenant, 'accountId'>,
): Promise<void> =>
  vi.waitFor(
    async () => {
      const { rows } = await sql`
        select from api_credentials where account_id = ${accountId} and last_used_at is not null`.execute(
        database,
      );
      expect(rows.length).toBeGreaterThan(0);
    },
    { timeout: 30_000, interval: 10 },
  );

/** The first use of a token on another account in an hour writes an audit entry, also beside the answer. */
export const untilMisuseIsRecorded = ({
  database,
}: Pick<ApiUnderTest, 'database'>): Promise<void> =>
  vi.waitFor(
    async () => {
      const { rows } = await sql`
        select from audit_logs where object_type = 'credential_misuse'`.execute(database);
      expect(rows).toHaveLength(1);
    },
    { timeout: 30_000, interval: 10 },
  );
