import { svcId, svcObjectId } from '@sluice/domain/values/svc-id';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertPerson } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
const ADA = svcId(1);

beforeAll(async () => {
  api = await startApi();
  const attributes = {
    plan: 'pro',
    age: 36,
    ratio: 1.5,
    isActive: true,
    nothing: null,
    tags: ['a', 1],
    address: { city: 'London' },
    svc_subscription_preferences: { topics: { topic_1: true } },
  };
  await insertPerson(api.database, api.a.environmentId, {
    personId: 1,
    id: 'Ada 1+/x',
    email: 'Ada@Example.com',
    unsubscribed: true,
    attributes: { ...attributes, ['__proto__']: 'odd' },
  });
  await insertPerson(api.database, api.a.environmentId, { personId: 2, email: 'bob@example.com' });
  await insertPerson(api.database, api.a.environmentId, { personId: 3, id: 'nomail' });
});
afterAll(() => api.close());

const PATH = `/v1/customers/${encodeURIComponent('Ada 1+/x')}`;

describe('GET /v1/customers?email=', () => {
  test('finds the person in any letter case', async () => {
    for (const email of ['Ada@Example.com', 'ada@example.COM']) {
      const answer = await api.call('GET', '/v1/customers', { query: { email } });
      expect(answer.json()).toEqual({
        results: [{ id: 'Ada 1+/x', email: 'Ada@Example.com', svc_id: ADA, cio_id: ADA }],
      });
    }
  });

  test.each(['nobody@example.com', 'ada%', '_da@example.com', "'; drop table people; --"])(
    '%j matches no person and gets 200 with an empty list',
    async (email) => {
      const answer = await api.call('GET', '/v1/customers', { query: { email } });
      expect(answer.statusCode).toBe(200);
      expect(answer.json()).toEqual({ results: [] });
    },
  );

  test('blanks and line breaks at the ends are no part of an identifier', async () => {
    const answer = await api.call('GET', '/v1/customers', {
      query: { email: ' ada@example.com\n' },
    });
    expect(answer.json()).toMatchObject({ results: [{ svc_id: ADA }] });
    const attributes = `/v1/customers/${encodeURIComponent(' nomail\n')}/attributes`;
    expect((await api.call('GET', attributes)).json()).toMatchObject({
      customer: { id: 'nomail' },
    });
  });

  test('a person who was stored with blanks is found by the exact identifier', async () => {
    await insertPerson(api.database, api.a.environmentId, { personId: 9, id: 'before\n' });
    const attributes = `/v1/customers/${encodeURIComponent('before\n')}/attributes`;
    expect((await api.call('GET', attributes)).json()).toMatchObject({
      customer: { id: 'before\n' },
    });
  });

  test('a plus sign that was not encoded is a space and matches no person', async () => {
    const answer = await api.call('GET', '/v1/customers?email=ada+x@example.com');
    expect(answer.json()).toEqual({ results: [] });
  });

  test.each([
    ['', 'required', 'email is required'],
    ['?email=', 'invalid', 'email must not be empty'],
    ['?email=a@b.example&email=c@d.example', 'invalid', 'email must be given once'],
    ['?email=a%00b', 'invalid', 'email must not hold NUL or unpaired surrogate characters'],
  ])('%j is 400', async (query, reason, message) => {
    const { errors } = expectProblem(
      await api.call('GET', `/v1/customers${query}`),
      400,
      'invalid_request',
    );
    expect(errors).toMatchObject([
      { field: 'email', reason, message, source: { parameter: 'email' } },
    ]);
  });
});

describe('GET /v1/customers/{id}/attributes', () => {
  test('shows the person, every attribute as text', async () => {
    await sql`
      insert into devices (environment_id, person_id, token, platform, last_used_at, attributes, created_at, updated_at)
      values (${api.a.environmentId}, 1, 'token-1', 'ios', '2026-02-03T00:00:00Z', '{"app_version": "1.2"}', now(), now()),
             (${api.a.environmentId}, 1, 'token-2', 'android', null, '{}', now(), now())`.execute(
      api.database,
    );
    const answer = await api.call('GET', `${PATH}/attributes`);
    const { customer } = answer.json();
    const { attributes } = customer;
    expect(customer).toMatchObject({
      id: 'Ada 1+/x',
      identifiers: { id: 'Ada 1+/x', email: 'Ada@Example.com', svc_id: ADA, cio_id: ADA },
      timestamps: { svc_id: 1_769_904_000, cio_id: 1_769_904_000 },
      unsubscribed: true,
      devices: [
        {
          id: 'token-1',
          platform: 'ios',
          last_used: 1_770_076_800,
          attributes: { app_version: '1.2' },
        },
        { id: 'token-2', platform: 'android', last_used: null, attributes: {} },
      ],
    });
    expect(attributes).toMatchObject({
      id: 'Ada 1+/x',
      email: 'Ada@Example.com',
      svc_id: ADA,
      cio_id: ADA,
      unsubscribed: 'true',
      plan: 'pro',
      age: '36',
      ratio: '1.5',
      isActive: 'true',
      nothing: 'null',
    });
    expect(JSON.parse(attributes.tags)).toEqual(['a', 1]);
    expect(JSON.parse(attributes.address)).toEqual({ city: 'London' });
    expect(JSON.parse(attributes.cio_subscription_preferences)).toEqual({
      topics: { topic_1: true },
    });
    expect(attributes.svc_subscription_preferences).toBe(attributes.cio_subscription_preferences);
    expect(answer.body).toContain('"__proto__":"odd"');
  });

  test.each([
    ['ADA@example.com', 'email'],
    [ADA, 'svc_id'],
    [ADA, 'cio_id'],
    [`cio_${ADA}`, 'cio_id'],
    [`svc_${ADA}`, 'svc_id'],
    ['Ada 1+/x', 'id'],
  ])('finds %j by id_type=%s', async (identifier, idType) => {
    const answer = await api.call(
      'GET',
      `/v1/customers/${encodeURIComponent(identifier)}/attributes?id_type=${idType}`,
    );
    expect(answer.json().customer.identifiers.svc_id).toBe(ADA);
  });

  test('a person without a subscription choice counts as subscribed, and a missing id is null', async () => {
    const answer = await api.call('GET', '/v1/customers/bob@example.com/attributes?id_type=email');
    const { customer } = answer.json();
    expect(customer).toMatchObject({ id: null, unsubscribed: false, devices: [] });
    expect(customer.attributes).not.toHaveProperty('unsubscribed');
    expect(customer.attributes).not.toHaveProperty('id');
  });

  test('an id is compared exactly', async () => {
    expectProblem(
      await api.call('GET', '/v1/customers/ada%201%2B%2Fx/attributes'),
      404,
      'not_found',
    );
  });

  test.each([
    ['nobody', '', 'customer not found: no person has this id'],
    [
      'ada@example.com',
      '',
      'customer not found: no person has this id. To look up an email, send id_type=email',
    ],
    [
      `cio_${ADA}`,
      '',
      'customer not found: no person has this id. To look up a svc_id, send id_type=svc_id',
    ],
    ['Ada 1+/x', '?id_type=email', 'customer not found: no person has this email'],
    ['a3ffffff', '?id_type=cio_id', 'customer not found: no person has this cio_id'],
    ['1', '?id_type=svc_id', 'customer not found: no person has this svc_id'],
    ['a3fffffffffffffffffffff', '?id_type=svc_id', 'customer not found: no person has this svc_id'],
  ])(
    '%j%s is 404 with a message that names the kind of identifier',
    async (identifier, query, message) => {
      const answer = await api.call(
        'GET',
        `/v1/customers/${encodeURIComponent(identifier)}/attributes${query}`,
      );
      expect(expectProblem(answer, 404, 'not_found').message).toBe(message);
    },
  );

  test('a suppressed identifier finds no person', async () => {
    await insertPerson(api.database, api.a.environmentId, { personId: 4, id: 'hushed' });
    await sql`
      update person_identifiers set suppressed = true
      where environment_id = ${api.a.environmentId} and value = 'hushed'`.execute(api.database);
    expectProblem(await api.call('GET', '/v1/customers/hushed/attributes'), 404, 'not_found');
  });

  test.each(['phone', 'ID', '', 'id&id_type=email'])(
    'id_type=%s is 400 and the message lists the types',
    async (idType) => {
      for (const what of ['attributes', 'activities', 'relationships']) {
        const answer = await api.call('GET', `/v1/customers/nobody/${what}?id_type=${idType}`);
        const { errors } = expectProblem(answer, 400, 'invalid_request');
        expect(errors).toMatchObject([
          {
            field: 'id_type',
            message: expect.stringMatching(
              /must be one of id, email, svc_id, cio_id|must be given once/,
            ),
          },
        ]);
      }
    },
  );
});

describe('GET /v1/customers/{id}/relationships', () => {
  beforeAll(async () => {
    for (const [number, type, id] of [
      [1, 1, 'acme'],
      [2, 2, 'course'],
      [3, 1, 'umbrella'],
    ] as const) {
      await sql`
        insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
        values (${api.a.environmentId}, ${number}, ${type}, ${id}, '{}', now(), now())`.execute(
        api.database,
      );
      await sql`
        insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
        values (${api.a.environmentId}, 1, ${number}, ${JSON.stringify({ role: `role ${number}` })}, '2026-02-01T00:00:00Z', now())`.execute(
        api.database,
      );
    }
  });

  test('shows each object under its three identifiers, in both spellings', async () => {
    const body = (await api.call('GET', `${PATH}/relationships`)).json();
    expect(body.svc_relationships[0]).toEqual({
      object_type_id: 1,
      identifiers: {
        object_type_id: '1',
        object_id: 'acme',
        svc_object_id: svcObjectId(1),
        cio_object_id: svcObjectId(1),
      },
      attributes: { role: 'role 1' },
      timestamps: { created_at: 1_769_904_000 },
    });
    expect(body.svc_relationships).toHaveLength(3);
    expect(body.cio_relationships).toEqual(body.svc_relationships);
    expect(body.next).toBe('');
  });

  test('pages hold together', async () => {
    const first = (await api.call('GET', `${PATH}/relationships?limit=2`)).json();
    const second = (
      await api.call('GET', `${PATH}/relationships?limit=2&start=${first.next}`)
    ).json();
    const ids = [...first.svc_relationships, ...second.svc_relationships].map(
      (each) => each.identifiers.object_id,
    );
    expect(ids).toEqual(['acme', 'course', 'umbrella']);
    expect(second.next).toBe('');
  });

  test('of a person without any is an empty list', async () => {
    expect((await api.call('GET', '/v1/customers/nomail/relationships')).json()).toEqual({
      svc_relationships: [],
      cio_relationships: [],
      next: '',
    });
  });

  test('of an unknown person is 404', async () => {
    expectProblem(await api.call('GET', '/v1/customers/nobody/relationships'), 404, 'not_found');
    expectProblem(await api.call('GET', '/v1/customers/nobody/activities'), 404, 'not_found');
  });
});
