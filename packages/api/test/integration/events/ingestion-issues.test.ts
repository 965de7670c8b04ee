import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
  const rows = [
    ['2026-02-27', 'required', 'pipelines.track', 'event', 3],
    ['2026-02-28', 'required', 'pipelines.track', 'event', 2],
    ['2026-02-28', 'too_long', 'track.v1.identify', 'attributes.plan', 1],
    ['2026-02-28', 'duplicate_event', 'pipelines.batch', '', 9],
  ] as const;
  for (const [day, code, source, field, count] of rows) {
    await sql`
      insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message, sample)
      values (${api.a.environmentId}, ${day}, ${code}, ${source}, ${field}, ${count}, ${`${day}T08:00:00Z`},
              ${`${day}T09:30:00Z`}, 'said so', ${field === '' ? null : 'a sample'})`.execute(
      api.database,
    );
  }
});
afterAll(() => api.close());

const PATH = '/v1/ingestion_issues';
const namesOf = (answer: { json(): { ingestion_issues: { day: string; code: string }[] } }) =>
  answer.json().ingestion_issues.map((issue) => `${issue.day} ${issue.code}`);

test('the list has the ingestion issues with the newest day first', async () => {
  const answer = await api.call('GET', PATH);
  expect(namesOf(answer)).toEqual([
    '2026-02-28 too_long',
    '2026-02-28 required',
    '2026-02-28 duplicate_event',
    '2026-02-27 required',
  ]);
  expect(answer.json().ingestion_issues[0]).toEqual({
    code: 'too_long',
    severity: 'error',
    source: 'track.v1.identify',
    field: 'attributes.plan',
    message: 'said so',
    sample: 'a sample',
    credential_id: null,
    day: '2026-02-28',
    count: 1,
    first_at: 1_772_265_600,
    last_at: 1_772_271_000,
  });
  expect(answer.json().ingestion_issues[2]).toMatchObject({
    severity: 'warning',
    field: null,
    sample: null,
    count: 9,
  });
  expect(answer.json().next).toBe('');
});

test.each([
  ['code=required', ['2026-02-28 required', '2026-02-27 required']],
  ['source=pipelines.batch', ['2026-02-28 duplicate_event']],
  ['field=attributes.plan', ['2026-02-28 too_long']],
  ['field=', ['2026-02-28 duplicate_event']],
  ['code=%25', []],
  ['severity=warning', ['2026-02-28 duplicate_event']],
  ['severity=error&source=pipelines.track', ['2026-02-28 required', '2026-02-27 required']],
  ['severity=warning&code=required', []],
  // 08:00 on the 28th, when the last three began.
  ['until=1772265600', ['2026-02-27 required']],
  [
    'until=1772265601&since=1772271000',
    ['2026-02-28 too_long', '2026-02-28 required', '2026-02-28 duplicate_event'],
  ],
  ['code=required&source=track.v1.identify', []],
  [
    'since=1772271000',
    ['2026-02-28 too_long', '2026-02-28 required', '2026-02-28 duplicate_event'],
  ],
  ['since=1772271001', []],
  [
    'since=0',
    [
      '2026-02-28 too_long',
      '2026-02-28 required',
      '2026-02-28 duplicate_event',
      '2026-02-27 required',
    ],
  ],
])('%s', async (query, names) => {
  expect(namesOf(await api.call('GET', `${PATH}?${query}`))).toEqual(names);
});

test('pages hold together', async () => {
  const seen: string[] = [];
  let start = '';
  do {
    const answer = await api.call('GET', PATH, { query: { limit: '1', start } });
    seen.push(...namesOf(answer));
    start = answer.json().next;
  } while (start !== '');
  expect(seen).toEqual(namesOf(await api.call('GET', PATH)));
});

const token = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
test.each([
  ['since=yesterday', 'since'],
  ['since=-1', 'since'],
  ['since=1772271000000', 'since'],
  ['until=x', 'until'],
  ['severity=bad', 'severity'],
  ['limit=1001', 'limit'],
  ['code=a%00', 'code'],
  ['code=a&code=b', 'code'],
  [`start=${token(['2026-02-30', 'a', 'b', 'c'])}`, 'start'],
  [`start=${token(['2026-02-28', 'a', 'b', 'c\0'])}`, 'start'],
  [`start=${token(['2026-02-28', 'a'])}`, 'start'],
])('%s is 400 and names the field', async (query, field) => {
  const { errors } = expectProblem(
    await api.call('GET', `${PATH}?${query}`),
    400,
    'invalid_request',
  );
  expect(errors).toMatchObject([{ field }]);
});

test.each([
  ['in a script of three bytes a character', '属性'],
  ['that JSON writes with six characters each', '\u0001\u0002'],
])('a page that ends at the longest field that is kept, %s, has a next one', async (name, pair) => {
  const { environmentId, key } = await insertTenant(api.database, `key_${name.length}`);
  const fields = ['a', 'b', 'c'].map((first) => first + pair.repeat(100).slice(1));
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    select ${environmentId}, '2026-02-28', 'unsupported', 'track.v2.batch', field, 1, now(), now(), 'x'
      from unnest(${fields}::text[]) field`.execute(api.database);
  const seen: string[] = [];
  let start = '';
  do {
    const answer = await api.call('GET', `${PATH}?limit=1&start=${start}`, { key });
    expect(answer.statusCode, answer.body).toBe(200);
    seen.push(...answer.json().ingestion_issues.map((issue: { field: string }) => issue.field));
    start = answer.json().next;
  } while (start !== '');
  expect(seen.toSorted()).toEqual(fields);
});
