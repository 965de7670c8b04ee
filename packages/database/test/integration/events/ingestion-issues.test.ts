/** Rows of the issues log, for any mistakes of a sender. */
import type { Issue, IssueCode } from '@sluice/domain/operations/issue';
import type { IssueRow } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { recordIssues } from '../../../src/events/ingestion-issues.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const AT_MS = Date.parse('2026-01-31T12:00:00Z');
const CODES = ['value_corrected', 'attributes_left_out', 'too_long', 'email_invalid'] as const;

let database: Database;
let lastEnvironmentId = 100;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

function issueOf(
  environmentId: number,
  code: IssueCode,
  field: string | null,
  more: Partial<Issue> = {},
): IssueRow {
  const issue = { code, field, message: `${field} is wrong`, ...more };
  return { environmentId, source: 'pipelines.identify', issue, count: 1, atMs: AT_MS };
}

const record = (...issues: IssueRow[]): Promise<void> =>
  database.transaction().execute((transaction) => recordIssues(transaction, issues));

/** Issues of as many other fields, in transactions of 2,000. */
async function flood(environmentId: number, count: number): Promise<void> {
  for (let from = 0; from < count; from += 2_000)
    await record(
      ...Array.from({ length: 2_000 }, (_, index) =>
        issueOf(environmentId, CODES[index % 4] ?? 'invalid', `traits.name_${from + index}`),
      ),
    );
}

async function rowsOf(environmentId: number) {
  const { rows } = await sql<{ code: string; field: string; count: number; message: string }>`
    select code, field, count::int, message from ingestion_issues
    where environment_id = ${environmentId}`.execute(database);
  return rows;
}

// Every attribute of another name was a row: a public write key made 360 bytes of log for each, without end.
test('a sender with ever new names has a bounded number of rows a day, and every issue is counted', async () => {
  const environmentId = lastEnvironmentId++;
  await flood(environmentId, 10_000);
  const rows = await rowsOf(environmentId);
  expect(rows.length).toBeLessThanOrEqual(1_000);
  expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(10_000);
  const beyond = rows.filter(({ field }) => field === 'traits.*');
  expect(beyond.map(({ code }) => code).toSorted()).toEqual(CODES.toSorted());
  expect(beyond.find(({ code }) => code === 'too_long')?.message).toBe('traits.name_9998 is wrong');
});

test('a flood hides no issue of another kind or of another workspace', async () => {
  const [environmentId, other] = [lastEnvironmentId++, lastEnvironmentId++];
  const codes = ['invalid', 'required', 'unsupported', 'key_repeated'] as const;
  for (const code of [...CODES, ...codes])
    await record(
      ...Array.from({ length: 500 }, (_, n) => issueOf(environmentId, code, `context.name_${n}`)),
    );
  await flood(environmentId, 2_000);
  await record(
    issueOf(environmentId, 'timestamp_in_milliseconds', 'timestamp'),
    issueOf(other, 'value_corrected', 'traits.birthday'),
  );
  expect(await rowsOf(environmentId)).toContainEqual(
    expect.objectContaining({ code: 'timestamp_in_milliseconds', field: 'timestamp', count: 1 }),
  );
  expect(await rowsOf(other)).toEqual([expect.objectContaining({ field: 'traits.birthday' })]);
});

test('a field that the log has is counted on by its name, also during a flood', async () => {
  const environmentId = lastEnvironmentId++;
  await record(issueOf(environmentId, 'too_long', 'traits.birthday'));
  await flood(environmentId, 4_000);
  await record(issueOf(environmentId, 'too_long', 'traits.birthday'));
  expect(await rowsOf(environmentId)).toContainEqual(
    expect.objectContaining({ code: 'too_long', field: 'traits.birthday', count: 2 }),
  );
});

test('the bound begins anew with each day', async () => {
  const environmentId = lastEnvironmentId++;
  await flood(environmentId, 4_000);
  const tomorrow = issueOf(environmentId, 'too_long', 'traits.birthday');
  await record({ ...tomorrow, atMs: AT_MS + 86_400_000 });
  expect(await rowsOf(environmentId)).toContainEqual(
    expect.objectContaining({ field: 'traits.birthday', count: 1 }),
  );
});
