/** Every operation that changes something leaves one entry in the audit log, in the transaction of its change. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from './api-under-test.ts';
import {
  insertChangeable,
  listChanging,
  prepareChange,
  requestOf,
  snapshotOf,
  waitingStatusOf,
} from './changing-operations.ts';

let api: ApiUnderTest;
let owned: Readonly<Record<string, string>>;
beforeAll(async () => {
  api = await startApi({ recordCredentialUse: async () => {} });
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

/** No entry can be committed while it lasts. */
async function whileNothingIsAudited<Result>(work: () => Promise<Result>): Promise<Result> {
  await sql`
    create function refuse_entry() returns trigger language plpgsql as
      $$begin raise exception 'no entry today'; end$$`.execute(api.database);
  await sql`
    create constraint trigger refuse_entry after insert on audit_logs
      deferrable initially deferred for each row execute function refuse_entry()`.execute(
    api.database,
  );
  try {
    return await work();
  } finally {
    await sql`drop function refuse_entry() cascade`.execute(api.database);
  }
}

const DRAW_SECRET = {
  method: 'POST',
  path: '/v1/reporting_webhooks/{webhook_id}/secrets',
  takesBody: true,
} as const;
/** Whoever applies or signs up has no account yet, whose log it could stand in. */
const OF_NO_ACCOUNT = '/v1/account_signup';
/** What is done to deliveries stands in their own log, with whose key did it. */
const OF_DELIVERIES = /\/(probe|skip_head|resend|test|replays|cancel)$/;
/** A search, a token that only narrows another, and what is brought in, which says itself whence it came. */
const NO_CHANGES = ['/v1/objects', '/v1/service_accounts/oauth/token', '/v1/imports'];
/** A service account comes with its first token: two objects, an entry each. */
const PAIRS = ['POST /v1/accounts/{account_id}/api_credentials'];

/** Three snapshots of the database an operation, on a machine that others use too. */
const EVERY_OPERATION_TIMEOUT_MS = 90_000;

test(
  'I37: every change writes one entry, and is undone where its entry cannot be written',
  async () => {
    const audited: string[] = [];
    const unaudited: string[] = [];
    for (const operation of listChanging(api)) {
      const { method, path } = operation;
      if (path.startsWith(OF_NO_ACCOUNT) || OF_DELIVERIES.test(path) || NO_CHANGES.includes(path))
        continue;
      const shown = `${method} ${path}`;
      await prepareChange(api, operation);
      // The one before has become the webhook's own.
      if (path.endsWith('/secrets/next'))
        await api.app.inject(requestOf(api, { ...operation, ...DRAW_SECRET }, owned));
      const call = () => api.app.inject(requestOf(api, operation, owned));
      const before = await snapshotOf(api);
      await whileNothingIsAudited(call);
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
    expect(audited.length).toBeGreaterThan(20);
  },
  EVERY_OPERATION_TIMEOUT_MS,
);
