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
