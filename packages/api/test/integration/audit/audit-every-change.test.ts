/** Every operation with a change leaves one entry in the audit log. The entry is in the transaction of its change. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import {
  insertChangeable,
  listChanging,
  prepareChange,
  requestOf,
  snapshotOf,
  waitingStatusOf,
  whileNothingIsAudited,
} from '../support/changing-operations.ts';
import { insertOwned } from '../support/tenant-world.ts';

let api: ApiUnderTest;
let owned: Readonly<Record<string, string>>;
beforeAll(async () => {
  api = await startApi();
  owned = await insertChangeable(api);
});
afterAll(() => api.close());

const countEntries = async (): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from audit_logs`.execute(api.database);
  return rows[0]!.count;
};

/** The tables that differ. */
function changesBetween(before: string, after: string): string[] {
  const tables = (text: string) =>
    JSON.parse(text) as readonly { readonly name: string; readonly rows: unknown }[];
  const then = new Map(tables(before).map(({ name, rows }) => [name, JSON.stringify(rows)]));
  return tables(after).flatMap(({ name, rows }) =>
    then.get(name) === JSON.stringify(rows) ? [] : [name],
  );
}

const DRAW_SECRET = {
  method: 'POST',
  path: '/v1/reporting_webhooks/{webhook_id}/secrets',
  takesBody: true,
} as const;
/** A search, a token that only narrows another, and a check of a payload. */
const NO_CHANGES = [
  '/v1/objects',
  '/v1/service_accounts/oauth/token',
  '/v1/event_types/{name}/check',
];
/** A service account comes with its first token: two objects, an entry each. */
const PAIRS = ['POST /v1/accounts/{account_id}/api_credentials'];

/** Three snapshots of the database an operation, on a machine that others use too. */
const EVERY_OPERATION_TIMEOUT_MS = 240_000;

test(
  'I37: every change writes one entry, and is undone if its entry cannot be written',
  async () => {
    const audited: string[] = [];
    const unaudited: string[] = [];
    for (const operation of listChanging(api)) {
      const { method, path, opensWith } = operation;
      // A caller who applies or asks for a code has no account yet, whose log it could stand in.
      if (opensWith === 'nothing' || NO_CHANGES.includes(path)) continue;
      const shown = `${method} ${path}`;
      await prepareChange(api, operation);
      // The one before has become the webhook's own.
      if (path.endsWith('/secrets/next'))
        await api.app.inject(requestOf(api, { ...operation, ...DRAW_SECRET }, owned));
      const call = () => api.app.inject(requestOf(api, operation, owned));
      const before = await snapshotOf(api);
      await whileNothingIsAudited(api, call);
      const without = changesBetween(before, await snapshotOf(api));
      const entriesBefore = await countEntries();
      const answer = await call();
      const waitingStatus = waitingStatusOf(operation);
      if (waitingStatus === undefined) expect(answer.statusCode, answer.body).toBeLessThan(300);
      else expect(answer.statusCode, answer.body).toBe(waitingStatus);
      const changes = changesBetween(before, await snapshotOf(api));
      const entries = (await countEntries()) - entriesBefore;
      const wanted = PAIRS.includes(shown) ? 2 : 1;
      if (entries === wanted && without.length === 0) audited.push(shown);
      else unaudited.push(`${shown}: ${entries} of ${changes.join()}, without ${without.join()}`);
      api.clock.nowMs += 1_000;
    }
    expect(unaudited).toEqual([]);
    expect(audited.length).toBeGreaterThan(28);
  },
  EVERY_OPERATION_TIMEOUT_MS,
);

test('the audit entries of delivery operations and imports leave out the people concerned', async () => {
  const { b } = api;
  const their = await insertOwned(api, b, 'their');
  await sql`update webhook_replays set state = 'done', ended_at = now()`.execute(api.database);
  const { rows: last } = await sql<{ id: number }>`
    select max(audit_log_id)::int as id from audit_logs where account_id = ${b.accountId}`.execute(
    api.database,
  );
  const post = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const answer = await api.call('POST', path, { key: b.key, ...(body && { body }) });
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json();
  };
  const webhookId = their['webhook_id'];
  const webhook = `/v1/reporting_webhooks/${webhookId}`;
  const wanted = { since: 0, person: { id: 'ada@example.com' }, rate_per_second: 5 };
  await post(`${webhook}/probe`);
  // It is due already.
  await post(`${webhook}/probe`);
  await post(`${webhook}/skip_head`, { sequence: 2, reason: 'gone for good' });
  await post(`${webhook}/deliveries/1/resend`);
  const { replay } = (await post(`${webhook}/replays`, wanted)) as { replay: { id: number } };
  await post(`${webhook}/replays`, { ...wanted, dry_run: true });
  await post(`${webhook}/replays/${replay.id}/cancel`);
  await post(`${webhook}/replays/${replay.id}/cancel`);
  await post(`/v1/imports/${their['import_id']}/cancel`);

  const { rows } = await sql<{ action: string; object: string; changes: string }>`
    select action, object_type || ' ' || object_id as object, actor_type || ' ' || credential_id as actor,
           array(select concat(c->>'attribute', ': ', c->'from', ' to ', c->'to')
                   from jsonb_array_elements(changes) c) as changes
      from audit_logs where account_id = ${b.accountId} and audit_log_id > ${last[0]!.id}
     order by audit_log_id`.execute(api.database);
  const nowText = new Date(api.clock.nowMs).toISOString();
  const probeText = new Date(api.clock.nowMs + 3_600_000).toISOString();
  const actor = expect.stringMatching(/^service_account \d+$/);
  expect(rows).toEqual([
    {
      action: 'updated',
      object: `delivery ${webhookId}/2`,
      actor,
      changes: [`next_attempt_at: "${probeText}" to "${nowText}"`],
    },
    {
      action: 'updated',
      object: `delivery ${webhookId}/2`,
      actor,
      changes: [
        'state: "retrying" to "abandoned"',
        expect.stringMatching(/^note: null to "skipped with the key .*: gone for good"$/),
      ],
    },
    {
      action: 'created',
      object: `delivery ${webhookId}/3`,
      actor,
      changes: [
        'origin: null to "resend"',
        'resend_of: null to 1',
        'event_id: null to "their"',
        'event_type: null to "email_sent"',
      ],
    },
    {
      action: 'created',
      object: `replay ${webhookId}/${replay.id}`,
      actor,
      changes: ['since: null to 0', 'person: null to "[redacted]"', 'rate_per_second: null to 5'],
    },
    {
      action: 'updated',
      object: `replay ${webhookId}/${replay.id}`,
      actor,
      changes: ['cancelled: null to true'],
    },
    {
      action: 'updated',
      object: `import ${their['import_id']}`,
      actor,
      changes: ['cancelled: null to true'],
    },
  ]);
});
