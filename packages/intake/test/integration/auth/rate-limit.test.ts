import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';

const BURST = 3;
let intake: IntakeUnderTest;
beforeAll(async () => {
  // So slow that no token grows back while the test runs.
  intake = await startIntakeUnderTest({ perSecond: BURST / 3_600, windowSeconds: 3_600 });
});
afterAll(() => intake.close());

const send = (path: string, authorization: string, body: object) =>
  fetch(`${intake.url}${path}`, {
    method: 'POST',
    headers: { Authorization: authorization },
    body: JSON.stringify(body),
  });

test('a call over the rate is 429 on both APIs, in permissive mode too, and stores no operation', async () => {
  // Strangers do not use up the workspace's calls.
  for (let n = 0; n < 10; n++) {
    const answer = await send('/v1/track', 'Basic d3Jvbmc6', { userId: 'a', event: 'x' });
    expect(answer.headers.get('ratelimit-limit')).toBeNull();
  }
  const track = { userId: 'a', event: 'taken' };
  for (let n = 0; n < BURST; n++) {
    const answer = await send('/v1/track', PIPELINES_AUTHORIZATION, track);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('ratelimit-limit')).toBe(String(BURST));
    expect(answer.headers.get('ratelimit-remaining')).toBe(String(BURST - 1 - n));
    expect(Number(answer.headers.get('ratelimit-reset'))).toBeGreaterThan(0);
  }
  for (const [path, authorization] of [
    ['/v1/track', PIPELINES_AUTHORIZATION],
    ['/api/v1/customers/a/events', TRACK_AUTHORIZATION],
    ['/api/v2/entity', TRACK_AUTHORIZATION],
  ] as const) {
    const answer = await send(path, authorization, { userId: 'a', event: 'over', name: 'over' });
    expect(answer.status).toBe(429);
    expect(answer.headers.get('ratelimit-remaining')).toBe('0');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(600);
    expect(await answer.json()).toMatchObject({ code: 'rate_limited', status: 429 });
  }
  expect(intake.operations.map((operation) => operation.type)).not.toContain('issue.record');
  expect(JSON.stringify(intake.operations)).not.toContain('over');
});
