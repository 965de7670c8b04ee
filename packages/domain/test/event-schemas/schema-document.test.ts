/** A schema with keywords without effect is refused, with the place. */
import { expect, test } from 'vitest';
import { readSchema } from '../../src/event-schemas/schema-document.ts';
import type { Json } from '../../src/values/json.ts';

const nested = (depth: number): Json =>
  depth === 0 ? {} : { properties: { a: nested(depth - 1) } };

const lists = (depth: number): Json =>
  JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`) as Json;

test.each<[string, string, Json]>([
  ['no object', '', true],
  ['a keyword that is none', '/propertis', { propertis: {} }],
  [
    'a keyword of another version',
    '/properties/a/dependencies',
    { properties: { a: { dependencies: {} } } },
  ],
  ['a list of items, as in other versions', '/items', { items: [{}] }],
  ['nullable, of OpenAPI', '/nullable', { nullable: true }],
  ['another version', '/$schema', { $schema: 'http://json-schema.org/draft-07/schema#' }],
  ['a reference that leaves the document', '/$ref', { $ref: 'https://example.com/schema' }],
  ['a reference to a file', '/not/$ref', { not: { $ref: 'other.json#/a' } }],
  ['a reference to nothing', '/$ref', { $ref: '#/$defs/a' }],
  ['a reference to what is no schema', '/$ref', { $ref: '#/properties', properties: {} }],
  ['a malformed reference', '/$ref', { $ref: '#/%' }],
  ['a reference to itself', '/$ref', { $ref: '#' }],
  [
    'a circle of references',
    '/$defs/b/not/$ref',
    {
      $ref: '#/$defs/a',
      $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } },
    },
  ],
  ['a dynamic reference', '/$dynamicRef', { $dynamicRef: '#a' }],
  ['an identity below the root', '/properties/a/$id', { properties: { a: { $id: 'x' } } }],
  [
    'an anchor twice',
    '/properties/a/$anchor',
    { properties: { a: { $anchor: 'x' } }, $anchor: 'x' },
  ],
  ['a type that is none', '/type', { type: 'float' }],
  ['no type', '/type', { type: [] }],
  ['a count below nothing', '/minLength', { minLength: -1 }],
  ['a bound that is a text', '/minimum', { minimum: '1' }],
  ['a multiple of nothing', '/multipleOf', { multipleOf: 0 }],
  ['names that are numbers', '/required', { required: [1] }],
  ['no alternatives', '/anyOf', { anyOf: [] }],
  ['a schema that is a number', '/properties/a~1b', { properties: { 'a/b': 1 } }],
  ['a pattern that goes back', '/pattern', { pattern: '(a)\\1' }],
  ['a name’s pattern that is none', '/patternProperties/(', { patternProperties: { '(': {} } }],
  ['too many levels', '/properties/a'.repeat(32), nested(32)],
  [
    'too many schemas',
    '/properties/p998',
    {
      properties: Object.fromEntries(
        Array.from({ length: 1_001 }, (_, index): [string, Json] => [`p${index}`, {}]),
      ),
    },
  ],
  ['too large', '', { description: 'x'.repeat(32_768) }],
  [
    'a constant of too many levels',
    '/properties/a/const',
    { properties: { a: { const: lists(101) } } },
  ],
  ['a value of too many levels', '/enum', { enum: [1, lists(100)] }],
  ['an annotation of too many levels', '/x-a', { 'x-a': lists(3_500) }],
])('%s', (_, pointer, schema) => {
  const read = readSchema(schema);
  expect(read).toMatchObject({ outcome: 'refused', message: expect.any(String) as string });
  if (read.outcome === 'refused' && pointer !== '/properties/p998')
    expect(read.pointer).toBe(pointer);
});

test('a constant may have as many levels as a payload', () => {
  expect(readSchema({ const: lists(100) }).outcome).toBe('read');
});

test('a type that contains itself, annotations and names that begin with x- are taken', () => {
  const schema: Json = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://example.com/order',
    title: 'Order',
    'x-owner': { team: 'shop' },
    properties: { parts: { type: 'array', items: { $ref: '#' } }, at: { format: 'date-time' } },
  };
  expect(readSchema(schema).outcome).toBe('read');
});
