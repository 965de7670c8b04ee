/** Calls of Track v1 without credentials, or near other workspaces' data. */
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
  await sql`insert into environments (account_id, environment_id, name, webhook_signing_key)
            values (1, 2, 'other', 'signing-key')`.execute(intake.database);
  await sql`
    insert into message_deliveries (environment_id, delivery_id, channel, person_id, created_at) values
      (1, 'mine', 'email', 7, now()), (2, 'theirs', 'email', 8, now()),
      (1, 'shared', 'email', 7, now()), (2, 'shared', 'email', 8, now())`.execute(intake.database);
});
afterAll(() => intake.close());

let seenCount = 0;
beforeEach(() => {
  seenCount = intake.operations.length;
});
const seen = () => intake.operations.slice(seenCount);

const unsubscribe = (
  deliveryId: string,
  authorization?: string,
  body: string = '{"unsubscribe":true}',
) =>
  fetch(`${intake.url}/unsubscribe/${encodeURIComponent(deliveryId)}`, {
    method: 'POST',
    body,
    headers: {
      'Content-Type': 'application/json',
      ...(authorization !== undefined && { Authorization: authorization }),
    },
  });

describe('POST /unsubscribe/{delivery_id}', () => {
  test('without credentials it acts in the one workspace that knows the delivery', async () => {
    for (const [deliveryId, environmentId] of [
      ['mine', 1],
      ['theirs', 2],
    ] as const) {
      const answer = await unsubscribe(deliveryId);
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({});
      await vi.waitFor(() => {
        expect(seen().at(-1)).toMatchObject({
          type: 'delivery.unsubscribe',
          environmentId,
          deliveryId,
        });
      }, 20_000);
    }
  });

  test.each(['unknown', 'MINE', 'mine ', "'; drop table people; --", '%', '__proto__'])(
    'an unknown delivery %j is 400 and stores no operation',
    async (deliveryId) => {
      const answer = await unsubscribe(deliveryId);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('bad delivery id'),
        errors: [{ field: 'delivery_id' }],
      });
      expect(seen()).toEqual([]);
    },
  );

  test('a NUL in the delivery id is 400 and never reaches Postgres', async () => {
    expect((await unsubscribe('mine\0')).status).toBe(400);
  });

  // Tenant safety: a sender that reports metrics under another workspace's ids must reach no person there.
  test('an id known in two workspaces is 400, unsubscribes no person, and is an issue of both', async () => {
    const answer = await unsubscribe('shared');
    expect(answer.status).toBe(400);
    const problem = (await answer.json()) as { code: string; message: string };
    expect(problem).toMatchObject({ code: 'identifier_conflict' });
    expect(problem.message).toContain('bad delivery id');
    await vi.waitFor(() => expect(seen()).toHaveLength(2), 20_000);
    for (const environmentId of [1, 2]) {
      expect(seen()).toContainEqual(
        expect.objectContaining({
          type: 'issue.record',
          environmentId,
          source: 'track.v1.unsubscribe',
          issue: expect.objectContaining({ code: 'identifier_conflict', sample: 'shared' }),
        }),
      );
    }
  });

  // Security: copying a workspace's delivery ids must not keep its people from unsubscribing.
  test('credentials select the workspace, so an id that another workspace also knows is taken', async () => {
    expect((await unsubscribe('shared', TRACK_AUTHORIZATION)).status).toBe(200);
    await vi.waitFor(
      () => expect(seen()).toMatchObject([{ type: 'delivery.unsubscribe', environmentId: 1 }]),
      20_000,
    );
  });

  test("credentials reach no delivery but their own workspace's", async () => {
    expect((await unsubscribe('theirs', TRACK_AUTHORIZATION)).status).toBe(400);
    expect(seen()).toEqual([]);
  });

  test('credentials that open no workspace count as missing credentials', async () => {
    for (const authorization of ['Basic d3Jvbmc6d3Jvbmc=', PIPELINES_AUTHORIZATION, 'nonsense']) {
      expect((await unsubscribe('theirs', authorization)).status).toBe(200);
      expect((await unsubscribe('shared', authorization)).status).toBe(400);
    }
    await vi.waitFor(() => expect(seen()).toHaveLength(3 + 3 * 2), 20_000);
  });

  test.each(['{}', '{"unsubscribe":false}', '{"unsubscribe":', '[]', ''])(
    'the body %j is 400',
    async (body) => {
      const answer = await unsubscribe('mine', undefined, body);
      expect(answer.status).toBe(400);
      expect(seen()).toEqual([]);
    },
  );

  test('a flood of unknown deliveries does not block other calls', async () => {
    const flood = Promise.all(Array.from({ length: 500 }, () => unsubscribe('unknown')));
    const answer = await fetch(`${intake.url}/v1/track`, {
      method: 'POST',
      headers: { Authorization: PIPELINES_AUTHORIZATION },
      body: JSON.stringify({ userId: 'a', event: 'beside a flood' }),
    });
    expect(answer.status).toBe(200);
    const statuses = new Set((await flood).map(({ status }) => status));
    for (const status of statuses) expect([400, 503]).toContain(status);
    expect((await unsubscribe('unknown')).status).toBe(400);
    // Else it is among the operations of the next test.
    await vi.waitFor(
      () =>
        expect(seen()).toContainEqual(
          expect.objectContaining({ type: 'event.track', name: 'beside a flood' }),
        ),
      20_000,
    );
  });
});

describe('manual segments', () => {
  const change = (action: string, query: string, body: object) =>
    fetch(`${intake.url}/api/v1/segments/7/${action}_customers${query}`, {
      method: 'POST',
      headers: { Authorization: TRACK_AUTHORIZATION },
      body: JSON.stringify(body),
    });

  test.each([
    ['add', '', 'id'],
    ['add', '?id_type=id', 'id'],
    ['remove', '?id_type=email', 'email'],
    ['remove', '?other=1&id_type=cio_id', 'svc_id'],
    ['add', '?id_type=em%61il', 'email'],
  ])('%s_customers%s names people by %s', async (action, query, kind) => {
    const ids = kind === 'email' ? ['a@example.com', 'b@example.com'] : ['a', 'b'];
    expect((await change(action, query, { ids })).status).toBe(200);
    await vi.waitFor(
      () =>
        expect(seen()).toMatchObject([
          {
            type: 'segment.change',
            environmentId: 1,
            segmentId: 7,
            action,
            people: ids.map((value) => ({ kind, value })),
          },
        ]),
      20_000,
    );
  });

  test('an unknown id_type is 400 with its name', async () => {
    const answer = await change('add', '?id_type=phone', { ids: ['a'] });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ errors: [{ field: 'id_type' }] });
  });

  test('a thousand of the longest identifiers fit in a call; one more is refused', async () => {
    const ids = Array.from({ length: 1_000 }, (_, n) => `${n}`.padStart(150, 'x'));
    expect((await change('add', '', { ids })).status).toBe(200);
    const answer = await change('add', '', { ids: [...ids, 'one more'] });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ errors: [{ field: 'ids' }] });
  });
});

describe('the tests of credentials', () => {
  const get = (path: string, authorization: string) =>
    fetch(`${intake.url}${path}`, { headers: { Authorization: authorization } });

  test('/auth and the region answer 200 to credentials in force', async () => {
    expect((await get('/auth', TRACK_AUTHORIZATION)).status).toBe(200);
    const answer = await get('/api/v1/accounts/region', TRACK_AUTHORIZATION);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await answer.json()).toEqual({
      url: `127.0.0.1:${intake.port}`,
      region: 'eu',
      environment_id: 1,
    });
  });

  test.each(['/auth', '/api/v1/accounts/region'])(
    '%s is 401 without them, and counted',
    async (path) => {
      const wrong = `Basic ${Buffer.from('site:wrong').toString('base64')}`;
      for (const authorization of ['', 'nonsense', PIPELINES_AUTHORIZATION, wrong]) {
        const answer = await get(path, authorization);
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toContain('Basic');
        expect(await answer.json()).toMatchObject({
          meta: { error: expect.stringMatching(/unauthorized request/i) },
        });
      }
      const counts = intake.unauthorized.take(0);
      expect(counts).toMatchObject([{ count: 3 }, { environmentId: 1, count: 1 }]);
    },
  );
});
