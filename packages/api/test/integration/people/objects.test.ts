import { svcId, svcObjectId } from '@sluice/domain/values/svc-id';
import { findObjects } from '@sluice/database/people/object-reads';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertPerson } from '../support/inserted-rows.ts';

let api: ApiUnderTest;

beforeAll(async () => {
  api = await startApi();
  for (const [number, typeId, id, attributes] of [
    [1, 1, 'Acme 1+/x', { name: 'Acme', seats: 12, isPaying: true, tags: ['a'], plan: 'pro' }],
    [2, 1, 'beta', { name: 'Beta', plan: 'pro' }],
    [3, 1, 'gamma', { name: 'Gamma', seats: 12 }],
    [4, 7, 'course', { name: 'Acme' }],
    [5, 2_147_483_647, 'last', {}],
  ] as const) {
    await sql`
      insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
      values (${api.a.environmentId}, ${number}, ${typeId}, ${id}, ${JSON.stringify(attributes)},
              '2026-02-01T00:00:00Z', now())`.execute(api.database);
  }
  for (const personId of [1, 2, 3]) {
    await insertPerson(api.database, api.a.environmentId, { personId, id: `person-${personId}` });
    await sql`
      insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
      values (${api.a.environmentId}, ${personId}, 1, ${JSON.stringify({ role: `role-${personId}` })},
              '2026-02-03T00:00:00Z', now())`.execute(api.database);
  }
});
afterAll(() => api.close());

const PATH = `/v1/objects/1/${encodeURIComponent('Acme 1+/x')}`;

const find = async (
  filter: unknown,
  query: Record<string, string> = {},
  objectTypeId: unknown = '1',
) => api.call('POST', '/v1/objects', { body: { object_type_id: objectTypeId, filter }, query });

const condition = (field: string, value?: unknown) => ({
  object_attribute: {
    field,
    type_id: '1',
    ...(value === undefined ? { operator: 'exists' } : { operator: 'eq', value }),
  },
});

describe('GET /v1/object_types', () => {
  test('lists each type in use once, in order, page after page', async () => {
    const types = [1, 7, 2_147_483_647].map((id) => ({ id: String(id), object_type_id: id }));
    expect((await api.call('GET', '/v1/object_types')).json()).toEqual({ types, next: '' });
    const shown: unknown[] = [];
    let start = '';
    do {
      const answer = await api.call('GET', '/v1/object_types', { query: { limit: '1', start } });
      shown.push(...answer.json().types);
      start = answer.json().next;
    } while (start !== '');
    expect(shown).toEqual(types);
  });

  test('is empty for a workspace without objects', async () => {
    const answer = await api.call('GET', '/v1/object_types', { key: api.b.key });
    expect(answer.json()).toEqual({ types: [], next: '' });
  });
});

describe('POST /v1/objects', () => {
  test.each<[string, unknown, string[]]>([
    ['a text', condition('plan', 'pro'), ['Acme 1+/x', 'beta']],
    ['a number, written as one', condition('seats', 12), ['Acme 1+/x', 'gamma']],
    ['a number, written as text', condition('seats', '12'), ['Acme 1+/x', 'gamma']],
    ['a boolean', condition('isPaying', true), ['Acme 1+/x']],
    ['an attribute that is there', condition('seats'), ['Acme 1+/x', 'gamma']],
    ['the object id', condition('object_id', 'beta'), ['beta']],
    ['not', { not: condition('seats') }, ['beta']],
    ['and', { and: [condition('plan', 'pro'), condition('seats')] }, ['Acme 1+/x']],
    ['or', { or: [condition('name', 'Beta'), condition('name', 'Gamma')] }, ['beta', 'gamma']],
    [
      'groups in groups',
      { and: [{ or: [condition('plan'), condition('seats')] }, { not: condition('tags') }] },
      ['beta', 'gamma'],
    ],
    ['nothing that anybody has', condition("' or '1'='1", 'x'), []],
  ])('finds by %s', async (_, filter, ids) => {
    const answer = await find(filter);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({ ids, next: '' });
  });

  test('returns each identifier of the found object', async () => {
    const ownId = svcObjectId(2);
    expect((await find(condition('name', 'Beta'))).json().identifiers).toEqual([
      { object_type_id: '1', object_id: 'beta', svc_object_id: ownId, cio_object_id: ownId },
    ]);
  });

  test('pages without repeating or leaving out', async () => {
    const first = (await find(condition('name'), { limit: '2' })).json();
    expect(first.ids).toEqual(['Acme 1+/x', 'beta']);
    const second = (await find(condition('name'), { limit: '2', start: first.next })).json();
    expect(second).toMatchObject({ ids: ['gamma'], next: '' });
  });

  test('a rare match is found however few objects a page looks at', async () => {
    const found: string[] = [];
    let after: string | undefined;
    let pageCount = 0;
    do {
      const page = await findObjects(api.database, {
        environmentId: api.a.environmentId,
        objectTypeId: 1,
        filter: { kind: 'equals', field: 'name', value: 'Gamma' },
        after,
        limit: 10,
        scanLimit: 1,
      });
      found.push(...page.objects.map(({ objectId }) => objectId));
      after = page.nextAfter;
      expect(++pageCount).toBeLessThan(10);
    } while (after !== undefined);
    expect(found).toEqual(['gamma']);
  });

  const deep = (depth: number): unknown =>
    depth === 0 ? condition('name') : { not: deep(depth - 1) };

  test.each<[string, unknown, string]>([
    ['absent', undefined, 'filter is required'],
    ['empty', {}, 'filter must hold one of and, or, not, object_attribute'],
    ['a list', [], 'filter must be a JSON object'],
    ['an empty group', { and: [] }, 'filter.and must be a list of at least one filter'],
    ['two groups at once', { and: [], or: [] }, 'must hold one of'],
    [
      'without a field',
      { object_attribute: { operator: 'exists' } },
      'filter.object_attribute.field',
    ],
    [
      'with another operator',
      { or: [{ object_attribute: { field: 'a', operator: 'gt', value: 1 } }] },
      'filter.or.0.object_attribute.operator must be one of eq, exists',
    ],
    ['too deep', deep(10), 'levels deep'],
    ['too long', { or: Array.from({ length: 101 }, () => condition('a')) }, '100 conditions'],
    [
      'about another type',
      { object_attribute: { field: 'a', operator: 'exists', type_id: '2' } },
      'type_id',
    ],
  ])('a filter that is %s is 400', async (_, filter, message) => {
    const problem = expectProblem(await find(filter), 400, 'invalid_request');
    expect(problem.message).toContain(message);
  });

  test('the deepest and longest filters allowed are answered', async () => {
    expect((await find(deep(9))).statusCode).toBe(200);
    const long = { or: Array.from({ length: 100 }, (_, n) => condition(`a${n}`, n)) };
    expect((await find(long)).statusCode).toBe(200);
  });

  test.each([0, '0', -1, '2147483648', 1.5, 'x', null])('type %j is 400', async (typeId) => {
    expectProblem(await find(condition('name'), {}, typeId), 400, 'invalid_request');
  });
});

describe('GET /v1/objects/{type}/{id}/…', () => {
  const ownId = svcObjectId(1);
  const identifiers = {
    object_type_id: '1',
    object_id: 'Acme 1+/x',
    svc_object_id: ownId,
    cio_object_id: ownId,
  };

  test.each([
    ['its id', PATH],
    ['its svc_object_id', `/v1/objects/1/${ownId}`, '?id_type=svc_object_id'],
    ['its cio_object_id', `/v1/objects/1/cio_${ownId}`, '?id_type=cio_object_id'],
  ])('shows the object by %s, every attribute as text', async (_, path, query = '') => {
    const answer = await api.call('GET', `${path}/attributes${query}`);
    expect(answer.json()).toEqual({
      object: {
        object_type_id: 1,
        identifiers,
        attributes: {
          ...identifiers,
          name: 'Acme',
          seats: '12',
          isPaying: 'true',
          tags: '["a"]',
          plan: 'pro',
        },
        timestamps: { svc_object_id: 1_769_904_000, cio_object_id: 1_769_904_000 },
      },
    });
  });

  test('lists the people with the attributes of each relationship, page after page', async () => {
    const relationships = [1, 2, 3].map((personId) => ({
      identifiers: {
        id: `person-${personId}`,
        email: null,
        svc_id: svcId(personId),
        cio_id: svcId(personId),
      },
      attributes: { role: `role-${personId}` },
      timestamps: { created_at: 1_770_076_800 },
    }));
    expect((await api.call('GET', `${PATH}/relationships`)).json()).toEqual({
      svc_relationships: relationships,
      cio_relationships: relationships,
      next: '',
    });
    const first = (await api.call('GET', `${PATH}/relationships?limit=2`)).json();
    expect(first.svc_relationships).toEqual(relationships.slice(0, 2));
    const rest = await api.call('GET', `${PATH}/relationships?limit=2&start=${first.next}`);
    expect(rest.json()).toMatchObject({ svc_relationships: relationships.slice(2), next: '' });
  });

  test.each([
    ['/v1/objects/1/nothing'],
    ['/v1/objects/2/beta'],
    ['/v1/objects/0/beta'],
    ['/v1/objects/x/beta'],
    ['/v1/objects/1/beta', '?id_type=svc_object_id'],
    [`/v1/objects/7/${ownId}`, '?id_type=svc_object_id'],
  ])('%s%s is 404', async (path, query = '') => {
    for (const part of ['attributes', 'relationships']) {
      expectProblem(await api.call('GET', `${path}/${part}${query}`), 404, 'not_found');
    }
  });
});
