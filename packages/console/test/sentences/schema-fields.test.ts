import { expect, test } from 'vitest';
import {
  boundsOf,
  fieldsOf,
  nameIn,
  type Schema,
  typeText,
} from '../../src/sentences/schema-fields.ts';

const SCHEMAS: Readonly<Record<string, Schema>> = {
  // Contains itself, as filters do.
  Filter: {
    type: 'object',
    required: ['field'],
    properties: {
      field: { type: 'string' },
      and: { type: 'array', items: { $ref: '#/components/schemas/Filter' } },
    },
  },
};
const resolve = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (SCHEMAS[nameIn(schema.$ref)] ?? {});
const namesIn = (schema: Schema): string[] =>
  fieldsOf(schema, resolve).map(({ name, isRequired }) => `${name}${isRequired ? '*' : ''}`);

test('fields of all levels are listed, of lists, of records and of values that may be null', () => {
  const one = { type: 'object', properties: { id: {} }, required: ['id'] };
  expect(
    namesIn({
      properties: {
        list: { type: 'array', items: one },
        map: { type: 'object', additionalProperties: one },
        maybe: { anyOf: [one, { type: 'null' }] },
        deep: { properties: { inner: { items: { items: one } } } },
      },
      required: ['list'],
    }),
  ).toEqual([
    ...['list*', 'list[].id*', 'map', 'map.*.id*', 'maybe', 'maybe.id*'],
    ...['deep', 'deep.inner', 'deep.inner[][].id*'],
  ]);
  expect(namesIn({ type: 'array', items: one })).toEqual(['[].id*']);
});

test('of forms, a field has the values of all of them, and is required if each requires it', () => {
  const form = (type: string, name: string): Schema => ({
    properties: { type: { const: type }, [name]: { type: 'string' } },
    required: ['type', name],
  });
  const schema = { oneOf: [form('person', 'email'), form('object', 'id')] };
  expect(namesIn(schema)).toEqual(['type*', 'email', 'id']);
  const [type] = fieldsOf(schema);
  expect([typeText(type?.field ?? {}), ...boundsOf(type?.field ?? {})]).toEqual([
    'string',
    'one of `person`, `object`',
  ]);
});

test('a schema that contains itself is listed once', () => {
  expect(namesIn({ $ref: '#/components/schemas/Filter' })).toEqual(['field*', 'and']);
  expect(namesIn({ properties: { filter: { $ref: '#/components/schemas/Filter' } } })).toEqual([
    ...['filter', 'filter.field*', 'filter.and'],
  ]);
});

test.each<[Schema, string[]]>([
  [
    { type: 'string', minLength: 1, maxLength: 9, pattern: '^a' },
    ['1 to 9 characters', 'matches `^a`'],
  ],
  [{ type: 'array', minItems: 2 }, ['at least 2 entries']],
  [{ type: 'array', minItems: 0, items: { type: 'integer', maximum: 3 } }, ['each at most 3']],
  [{ type: 'object', minProperties: 1, maxProperties: 20 }, ['1 to 20 members']],
  [{ type: 'integer', minimum: 1000, multipleOf: 1000 }, ['at least 1000', 'a multiple of 1000']],
  [{ anyOf: [{ enum: ['on'] }, { type: 'null' }] }, ['one of `on`']],
  // One of its forms takes any text.
  [{ anyOf: [{ enum: ['on'] }, { type: 'string' }] }, []],
  [{ type: 'array', items: { enum: ['on', 'off'] } }, ['each one of `on`, `off`']],
])('the bounds of %j', (schema, shown) => {
  expect(boundsOf(schema)).toEqual(shown);
});
