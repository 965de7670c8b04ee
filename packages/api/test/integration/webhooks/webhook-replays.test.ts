/** Replays as they are asked for and looked at; that they are sent as they should be is the worker's test. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

/** With five deliveries that have ended, of two types, and one that has not. */
async function createWebhook() {
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'a', endpoint: 'https://example.com', events: ['email_sent'] },
  });
  const { id } = made.json<{ id: number }>();
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, appended_at, body)
    select ${api.a.environmentId}, ${id}, n, 'e' || n, case when n % 2 = 0 then 'email_opened' else 'email_sent' end,
           now(), to_timestamp(n * 1000), '{"data": {"identifiers": {"id": "p' || n || '"}}}' from generate_series(1, 6) n`.execute(
    api.database,
  );
  await sql`
    update lanes set last_sequence = 6, cursor_sequence = 5, attempted_sequence = 5 where webhook_id = ${id}`.execute(
    api.database,
  );
  return { id, url: `/v1/reporting_webhooks/${id}/replays` };
}

test('a dry run counts deliveries and starts no replay', async () => {
  const { url } = await createWebhook();
  for (const [body, first, last, byType] of [
    [{ since: 0 }, 1, 5, { email_opened: 2, email_sent: 3 }],
    [{ since: 2_000 }, 2, 5, { email_opened: 2, email_sent: 2 }],
    [{ until: 2_000 }, 1, 1, { email_sent: 1 }],
    [{ event_types: ['email_opened'] }, 2, 4, { email_opened: 2 }],
    [{ person: { id: 'p3' } }, 3, 3, { email_sent: 1 }],
    [{ states: ['abandoned'] }, 0, 0, {}],
  ] as const) {
    const asked = { ...body, dry_run: true, rate_per_second: 2 };
    const answer = await api.call('POST', url, { body: asked });
    const count = Object.values<number>(byType).reduce((sum, each) => sum + each, 0);
    const loggedAt = (n: number) => (n === 0 ? null : new Date(n * 1_000_000).toISOString());
    expect(answer.json()).toEqual({
      dry_run: true,
      count,
      count_is_exact: true,
      replay: null,
      first: loggedAt(first),
      last: loggedAt(last),
      by_type: byType,
      takes_about_s: Math.ceil(count / 2),
    });
  }
  expect((await api.call('GET', url)).json()).toEqual({ replays: [] });
});

test('a dry run takes the rate limit of the webhook into its time, if it is lower', async () => {
  const { id, url } = await createWebhook();
  await api.call('PUT', `/v1/reporting_webhooks/${id}`, { body: { rate_limit_per_second: 1 } });
  const answer = await api.call('POST', url, { body: { since: 0, dry_run: true } });
  expect(answer.json()).toMatchObject({ count: 5, takes_about_s: 5 });
});

test('one is started, shown, refused a second, cancelled, and listed', async () => {
  const { url } = await createWebhook();
  const criteria = { since: 1, until: 4_500, event_types: ['email_sent'], states: ['delivered'] };
  const body = { ...criteria, person: { email: 'a@example.com' }, rate_per_second: 25 };
  const started = (await api.call('POST', url, { body })).json();
  const nowS = Math.floor(api.clock.nowMs / 1000);
  const shown = {
    id: expect.any(Number),
    state: 'running',
    failing: false,
    next_probe_at: null,
    criteria: { ...criteria, person: { email: 'a@example.com' } },
    rate_per_second: 25,
    total: 0,
    delivered: 0,
    abandoned: 0,
    created_at: nowS,
    created_by: 'test',
    ended_at: null,
  };
  expect(started).toEqual({ dry_run: false, count: 0, count_is_exact: true, replay: shown });
  const one = `${url}/${started.replay.id}`;
  expect((await api.call('GET', one)).json()).toEqual(started.replay);
  expect((await api.call('GET', `${one}/attempts`)).json()).toEqual({ attempts: [], next: '' });
  expectProblem(await api.call('POST', url, { body: { since: 0 } }), 409, 'conflict');

  const cancelled = { ...started.replay, state: 'cancelled', ended_at: nowS };
  expect((await api.call('POST', `${one}/cancel`)).json()).toEqual(cancelled);
  api.clock.nowMs += 5_000;
  expect((await api.call('POST', `${one}/cancel`)).json()).toEqual(cancelled);
  const next = (await api.call('POST', url, { body: { since: 0 } })).json();
  expect((await api.call('GET', url)).json()).toEqual({ replays: [next.replay, cancelled] });
});

test('its attempts are listed in the order of the deliveries, page by page', async () => {
  const { id, url } = await createWebhook();
  const { replay } = (await api.call('POST', url, { body: { since: 0 } })).json();
  await sql`
    insert into replay_attempts (environment_id, webhook_id, replay_id, sequence, attempt, duration_ms, started_at, status, outcome, failure, response_body)
    select ${api.a.environmentId}, ${id}, ${replay.id}, sequence, attempt, 5, to_timestamp(1700000000), 500, 'retrying', 'status', 'no'
      from generate_series(1, 3) sequence, generate_series(1, 2) attempt`.execute(api.database);
  const seen: string[] = [];
  for (let start = ''; ;) {
    const page = (
      await api.call('GET', `${url}/${replay.id}/attempts`, { query: { limit: '4', start } })
    ).json();
    for (const row of page.attempts)
      seen.push(`${row.sequence}.${row.attempt} ${row.response_body}`);
    start = page.next;
    if (start === '') break;
  }
  expect(seen).toEqual(['1.1 no', '1.2 no', '2.1 no', '2.2 no', '3.1 no', '3.2 no']);
});

describe('refused with the field named', () => {
  test.each<[string | null, object]>([
    [null, {}],
    [null, { rate_per_second: 5 }],
    ['since', { since: '2026-01-01' }],
    ['since', { since: 1_700_000_000_000 }],
    ['event_types', { event_types: [] }],
    ['event_types.0', { event_types: ['email_unknown'] }],
    ['states.0', { states: ['pending'] }],
    ['person', { person: {} }],
    ['person', { person: { id: 'a', email: 'b' } }],
    ['person.id', { person: { id: '' } }],
    ['rate_per_second', { since: 0, rate_per_second: 0 }],
    ['rate_per_second', { since: 0, rate_per_second: 1_001 }],
    ['dry_run', { since: 0, dry_run: 'yes' }],
  ])('%s: %j', async (field, body) => {
    const { url } = await createWebhook();
    const answer = await api.call('POST', url, { body });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(field);
  });
});

test('a webhook that is unknown or deleted has no replays', async () => {
  const { id, url } = await createWebhook();
  const { replay } = (await api.call('POST', url, { body: { since: 0 } })).json();
  await api.call('DELETE', `/v1/reporting_webhooks/${id}`);
  for (const missing of [id, 1_000_000]) {
    const base = `/v1/reporting_webhooks/${missing}/replays`;
    for (const dry_run of [true, false])
      expectProblem(
        await api.call('POST', base, { body: { since: 0, dry_run } }),
        404,
        'not_found',
      );
    expectProblem(await api.call('GET', base), 404, 'not_found');
    for (const path of ['', '/attempts'])
      expectProblem(await api.call('GET', `${base}/${replay.id}${path}`), 404, 'not_found');
    expectProblem(await api.call('POST', `${base}/${replay.id}/cancel`), 404, 'not_found');
  }
});
