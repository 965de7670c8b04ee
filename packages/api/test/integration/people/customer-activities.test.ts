import { svcId } from '@sluice/domain/values/svc-id';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertEvent, insertPerson } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
const ADA = svcId(1);
const PATH = '/v1/customers/ada';

beforeAll(async () => {
  api = await startApi();
  await insertPerson(api.database, api.a.environmentId, {
    personId: 1,
    id: 'ada',
    email: 'Ada@Example.com',
  });
  await insertPerson(api.database, api.a.environmentId, { personId: 2, email: 'bob@example.com' });
});
afterAll(() => api.close());

describe('GET /v1/customers/{id}/activities', () => {
  beforeAll(async () => {
    const person = { personId: 1 };
    const { environmentId } = api.a;
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'e1',
      occurredAt: '2026-02-27T10:00:00.123Z',
      data: { price: { amount: 5 } },
    });
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'e2',
      occurredAt: '2026-02-28T10:00:00Z',
      kind: 'page',
      name: '/home',
    });
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'e3',
      occurredAt: '2026-02-28T10:00:00Z',
      kind: 'attribute_change',
      name: null,
    });
    // Thirty days before the test's now, and a millisecond more.
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'edge',
      occurredAt: '2026-01-30T12:00:00Z',
      name: 'edge',
    });
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'old',
      occurredAt: '2026-01-30T11:59:59.999Z',
      name: 'old',
    });
    // Seconds taken for milliseconds: far in the future, and long here.
    await insertEvent(api.database, environmentId, {
      ...person,
      eventId: 'future',
      occurredAt: '2999-01-01T00:00:00Z',
      receivedAt: '2026-01-30T11:59:59.999Z',
      name: 'future',
    });
    await insertEvent(api.database, environmentId, {
      personId: 2,
      eventId: 'of-bob',
      occurredAt: '2026-02-28T10:00:00Z',
    });
  });

  const idsOf = (answer: { json(): { activities: { id: string }[] } }) =>
    answer.json().activities.map((each) => each.id);

  test('shows activities that arrived and occurred in the last thirty days, newest first', async () => {
    const answer = await api.call('GET', `${PATH}/activities`);
    // Of one instant the latest arrival is first.
    expect(idsOf(answer)).toEqual(['e3', 'e2', 'e1', 'edge']);
    expect(answer.json().next).toBe('');
    expect(answer.json().activities[2]).toEqual({
      id: 'e1',
      type: 'event',
      name: 'bought',
      timestamp: 1_772_186_400,
      data: { price: { amount: 5 } },
      customer_id: 'ada',
      customer_identifiers: { id: 'ada', email: 'Ada@Example.com', svc_id: ADA, cio_id: ADA },
    });
  });

  test.each([
    ['type=page', ['e2']],
    ['type=attribute_change', ['e3']],
    ['name=bought', ['e1']],
    ['name=%20bought%E2%80%8B', ['e1']],
    ['name=bough%25', []],
    ['type=&name=%20', ['e3', 'e2', 'e1', 'edge']],
    ['type=event&name=edge', ['edge']],
    ['type=page&name=bought', []],
    ['type=unheard_of', []],
  ])('%s filters exactly', async (query, ids) => {
    expect(idsOf(await api.call('GET', `${PATH}/activities?${query}`))).toEqual(ids);
  });

  test('pages are complete, even with equal times, and later arrivals cause no repeats', async () => {
    const seen: string[] = [];
    let start = '';
    for (let page = 0; page < 4; page++) {
      const answer = await api.call('GET', `${PATH}/activities`, { query: { limit: '1', start } });
      seen.push(...idsOf(answer));
      start = answer.json().next;
      expect(start === '').toBe(page === 3);
      await insertEvent(api.database, api.a.environmentId, {
        personId: 1,
        eventId: `new-${page}`,
        occurredAt: '2026-03-01T11:00:00Z',
      });
    }
    expect(seen).toEqual(['e3', 'e2', 'e1', 'edge']);
    await sql`delete from events where environment_id = ${api.a.environmentId} and event_id like 'new-%'`.execute(
      api.database,
    );
  });

  test.each(['0', '-1', '101', '1.5', '1e2', 'x', '99999999999'])(
    'limit=%s is 400',
    async (limit) => {
      const { errors } = expectProblem(
        await api.call('GET', `${PATH}/activities?limit=${limit}`),
        400,
        'invalid_request',
      );
      expect(errors).toMatchObject([{ field: 'limit' }]);
    },
  );

  const token = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  test.each([
    ['a word', 'first'],
    ['no JSON', Buffer.from('{').toString('base64url')],
    ['another shape', token({})],
    ['too few parts', token(['1'])],
    ['a time that is no number', token(['now', 'e1'])],
    ['a time beyond all', token(['9'.repeat(19), 'e1'])],
    ['NUL', token(['1', 'a\0'])],
    ['numbers', token([1, 2])],
    ["another list's", token([5])],
  ])('start that is %s is 400', async (_name, start) => {
    const { errors } = expectProblem(
      await api.call('GET', `${PATH}/activities`, { query: { start } }),
      400,
      'invalid_request',
    );
    expect(errors).toMatchObject([{ field: 'start' }]);
  });

  test('a token of the far end of time is an ordinary position', async () => {
    const start = token(['9'.repeat(18), 'e1']);
    expect(idsOf(await api.call('GET', `${PATH}/activities`, { query: { start } }))).toHaveLength(
      4,
    );
    expect(
      idsOf(await api.call('GET', `${PATH}/activities`, { query: { start: token(['0', '']) } })),
    ).toEqual([]);
  });
});
