/** Records of the issues of one call. */
import type { Issue } from '@sluice/domain/operations/issue';
import { expect, test } from 'vitest';
import { recordIssues } from '../../src/calls/call-issues.ts';
import { routes, type Call } from '../../src/calls/calls.ts';

const batch = routes.find(({ pattern }) => pattern === '/v1/batch')?.call as Call;
const workspace = { environmentId: 1, phoneIdentifies: false };
const record = (issues: readonly Issue[]) => recordIssues(batch, workspace, 0, issues);

test('issues with the same code and field are one record', () => {
  const issue: Issue = { code: 'invalid', field: 'userId', message: 'a' };
  expect(record([issue, { ...issue, message: 'b', callCount: 2 }])).toMatchObject([
    { issue: { field: 'userId', message: 'a' }, count: 3 },
  ]);
});

// One batch made 50,000 rows of the log, and kept the event loop for as long as it took to write them.
test('fields beyond a hundred are counted by their code alone, and every issue is counted', () => {
  const issues = Array.from({ length: 50_000 }, (_, at): Issue => {
    const code = at % 2 === 0 ? 'invalid' : 'number_not_finite';
    return { code, field: `properties.k${at}`, message: 'a', batchIndex: Math.floor(at / 20) };
  });
  const records = record(issues);
  expect(records).toHaveLength(102);
  expect(records.slice(100).map(({ issue: { code, field } }) => [code, field])).toEqual([
    ['invalid', null],
    ['number_not_finite', null],
  ]);
  expect(records.reduce((sum, { count }) => sum + count, 0)).toBe(50_000);
});
