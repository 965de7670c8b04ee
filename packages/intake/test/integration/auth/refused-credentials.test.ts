/** Refused credentials are counted by their reason, of every kind of request. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const WRONG = `Basic ${Buffer.from('wrong-key:').toString('base64')}`;
const EVENT = JSON.stringify({ type: 'track', userId: 'ann', event: 'bought' });

test.each([
  ['a call', 'POST', '/v1/track'],
  ['a stream', 'POST', '/v1/stream'],
  ['a test of credentials', 'GET', '/auth'],
  ['the question for a region', 'GET', '/api/v1/accounts/region'],
])('%s with a wrong key and one without a key are two reasons', async (_, method, path) => {
  const send = async (headers: Record<string, string>) => {
    const sent = { method, headers, ...(method === 'POST' && { body: EVENT }) };
    await (await fetch(`${intake.url}${path}`, sent)).text();
  };
  const count = (reason: 'missing' | 'not_in_force') =>
    intake.unauthorized.reasonCounts.get(reason) ?? 0;
  const before = { missing: count('missing'), wrong: count('not_in_force') };
  await send({ Authorization: WRONG });
  expect(count('not_in_force')).toBe(before.wrong + 1);
  expect(intake.unauthorized.takeSummary()?.last).toMatchObject({
    reason: 'not_in_force',
    hint: '-key',
  });
  await send({});
  expect(count('missing')).toBe(before.missing + 1);
  expect(count('not_in_force')).toBe(before.wrong + 1);
});

// A browser's client with a mistyped key asks for its settings, and sends no call after the answer.
test.each([
  ['/v1/projects/wrong-key/settings', 'pipelines.settings'],
  ['/segment/v1/projects/wrong-key/settings', 'pipelines.settings'],
  ['/customerio/v1/projects/wrong-key/settings', 'pipelines.settings'],
  ['/v1/analytics-js/snippet/wrong-key/analytics.min.js', 'pipelines.client'],
  ['/analytics.js/v1/wrong-key/analytics.min.js', 'pipelines.client'],
  ['/sourceConfig?writeKey=wrong-key', 'pipelines.source_config'],
])('a wrong key in %s is counted, and found in the log', async (path, source) => {
  const before = intake.unauthorized.reasonCounts.get('not_in_force') ?? 0;
  intake.unauthorized.takeSummary();
  const answer = await fetch(`${intake.url}${path}`);
  expect([400, 404]).toContain(answer.status);
  expect(intake.unauthorized.reasonCounts.get('not_in_force')).toBe(before + 1);
  expect(intake.unauthorized.takeSummary()?.last).toEqual({
    reason: 'not_in_force',
    hint: '-key',
    source,
  });
  const right = await fetch(`${intake.url}${path.replace('wrong-key', 'write-key')}`);
  expect(right.status).toBe(200);
  expect(intake.unauthorized.reasonCounts.get('not_in_force')).toBe(before + 1);
});

test('a stream with the right key is not counted', async () => {
  const before = new Map(intake.unauthorized.reasonCounts);
  const answer = await fetch(`${intake.url}/v1/stream`, {
    method: 'POST',
    headers: { Authorization: PIPELINES_AUTHORIZATION },
    body: `${EVENT}\n`,
  });
  expect(answer.status).toBe(200);
  await answer.text();
  expect(intake.unauthorized.reasonCounts).toEqual(before);
});
