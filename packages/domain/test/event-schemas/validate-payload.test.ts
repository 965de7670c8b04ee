/**
 * Payloads against schemas, compared with another implementation.
 *
 * The result has the places of the faults, and the work is bounded.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSchema, type EventSchema } from '../../src/event-schemas/schema-document.ts';
import { StepBudget } from '../../src/event-schemas/step-budget.ts';
import { validatePayload } from '../../src/event-schemas/validate-payload.ts';
import type { Json } from '../../src/values/json.ts';

function schemaOf(value: Json): EventSchema {
  const read = readSchema(value);
  if (read.outcome === 'refused') throw new Error(`${read.pointer} ${read.message}`);
  return read.schema;
}
const check = (schema: Json, payload: Json, budget = new StepBudget(10_000)) =>
  validatePayload(schemaOf(schema), payload, budget);

const NAMES = ['a', 'b', 'c/d'];
const { schema: anySchema } = fc.letrec<{ schema: Json; leaf: Json; schemas: Json[] }>((tie) => {
  const name = fc.constantFrom(...NAMES);
  const count = fc.nat(3);
  const type = fc.constantFrom('null', 'boolean', 'object', 'array', 'number', 'integer', 'string');
  const value = fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>;
  const keywords: [string, fc.Arbitrary<unknown>][] = [
    ['type', fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 }))],
    ['enum', fc.array(value, { minLength: 1, maxLength: 3 })],
    ['const', value],
    ['allOf', tie('schemas')],
    ['anyOf', tie('schemas')],
    ['oneOf', tie('schemas')],
    ['not', tie('schema')],
    ['if', tie('schema')],
    ['then', tie('schema')],
    ['else', tie('schema')],
    ['properties', fc.dictionary(name, tie('schema'), { maxKeys: 3 })],
    [
      'patternProperties',
      fc.dictionary(fc.constantFrom('^a', 'b|c', '.'), tie('schema'), { maxKeys: 2 }),
    ],
    ['additionalProperties', tie('schema')],
    ['unevaluatedProperties', tie('schema')],
    ['propertyNames', tie('schema')],
    ['required', fc.uniqueArray(name, { maxLength: 2 })],
    [
      'dependentRequired',
      fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 }),
    ],
    ['dependentSchemas', fc.dictionary(name, tie('schema'), { maxKeys: 2 })],
    ['minProperties', count],
    ['maxProperties', count],
    ['prefixItems', tie('schemas')],
    ['items', tie('schema')],
    ['unevaluatedItems', tie('schema')],
    ['contains', tie('schema')],
    ['minContains', count],
    ['maxContains', count],
    ['minItems', count],
    ['maxItems', count],
    ['uniqueItems', fc.boolean()],
    ['minLength', count],
    ['maxLength', count],
    ['pattern', fc.constantFrom('^a+$', 'b', '^.?$')],
    ['minimum', fc.integer({ min: -2, max: 2 })],
    ['maximum', fc.integer({ min: -2, max: 2 })],
    ['exclusiveMinimum', fc.integer({ min: -2, max: 2 })],
    ['exclusiveMaximum', fc.integer({ min: -2, max: 2 })],
    ['multipleOf', fc.constantFrom(1, 2, 3)],
  ];
  return {
    leaf: fc.oneof(
      fc.boolean(),
      type.map((each) => ({ type: each })),
    ) as fc.Arbitrary<Json>,
    schemas: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
    schema: fc.oneof(
      { maxDepth: 3 },
      tie('leaf'),
      fc
        .subarray(keywords, { minLength: 1, maxLength: 4 })
        .chain((chosen) => fc.record(Object.fromEntries(chosen))),
    ) as fc.Arbitrary<Json>,
  };
});
const anyPayload = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, true, false, 0, 1, -1, 2, 1.5, 6, '', 'a', 'aa', 'b', 'abc', '𝒳'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 3 }),
  ) as fc.Arbitrary<Json>,
})).value;

test('a payload is valid exactly if another implementation finds it valid', () => {
  // Without its own opinions, which are about authors and not about payloads.
  const ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false });
  fc.assert(
    fc.property(
      anySchema,
      fc.array(anyPayload, { minLength: 1, maxLength: 5 }),
      (given, payloads) => {
        fc.pre(typeof given === 'object' && given !== null);
        const schema = schemaOf(given);
        const other = ajv.compile(given as object);
        for (const payload of payloads) {
          const opinion = opinionOf(other, payload);
          if (opinion === undefined) continue;
          const { outcome } = validatePayload(schema, payload, new StepBudget(1_000_000));
          expect([payload, outcome]).toEqual([payload, opinion]);
        }
      },
    ),
    // The same schemas each time: the other implementation has faults of its own, which chance would find one day.
    { numRuns: 500, seed: 1 },
  );
});

/** Undefined if the other implementation breaks down, as it does over some members that it has looked at. */
function opinionOf(
  validate: (payload: Json) => unknown,
  payload: Json,
): 'valid' | 'invalid' | undefined {
  try {
    return validate(payload) === true ? 'valid' : 'invalid';
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

const ORDER: Json = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  required: ['id', 'lines'],
  additionalProperties: false,
  properties: {
    id: { type: 'string', pattern: '^o-\\d+$' },
    lines: { type: 'array', minItems: 1, items: { $ref: '#/$defs/line' } },
    'a/b~c': { $ref: '#price' },
  },
  $defs: {
    line: { type: 'object', properties: { price: { $ref: '#price' } }, required: ['price'] },
    price: { $anchor: 'price', type: 'number', exclusiveMinimum: 0, multipleOf: 0.01 },
  },
};

test('a payload that fits is valid, and each violation of another has the pointer of its place', () => {
  expect(check(ORDER, { id: 'o-1', lines: [{ price: 0.3 }] })).toEqual({ outcome: 'valid' });
  const wrong = { id: 'x', lines: [{ price: 1 }, {}, { price: 0.005 }], 'a/b~c': -1, more: 1 };
  const checked = check(ORDER, wrong);
  expect(checked).toMatchObject({ outcome: 'invalid' });
  const { violations } = checked as Extract<typeof checked, { outcome: 'invalid' }>;
  expect(violations.map(({ pointer }) => pointer)).toEqual([
    '/id',
    '/lines/1/price',
    '/lines/2/price',
    '/a~1b~0c',
    '/more',
  ]);
});

test('names that every object inherits are names like any other', () => {
  const schema = JSON.parse(
    '{"required":["constructor"],"properties":{"__proto__":{"type":"string"}},"additionalProperties":false}',
  ) as Json;
  const pointersOf = (text: string) => {
    const checked = check(schema, JSON.parse(text) as Json);
    return checked.outcome === 'invalid' ? checked.violations.map(({ pointer }) => pointer) : [];
  };
  expect(pointersOf('{}')).toEqual(['/constructor']);
  expect(pointersOf('{"__proto__":1,"toString":1}')).toEqual([
    '/constructor',
    '/__proto__',
    '/toString',
  ]);
});

test.each<[number, number, boolean]>([
  [0.3, 0.1, true],
  [19.99, 0.01, true],
  [1e308, 1e-300, true],
  [0.35, 0.1, false],
  [5e-324, 1, false],
  [-4, 2, true],
])('%d is a multiple of %d: %s', (payload, multipleOf, isMultiple) => {
  expect(check({ multipleOf }, payload).outcome).toBe(isMultiple ? 'valid' : 'invalid');
});

describe('work is bounded', () => {
  test('of definitions that ask each other twice', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, index): [string, Json] => [
        `d${index}`,
        { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
      ]),
    );
    const schema: Json = { $ref: '#/$defs/d0', $defs: { ...$defs, d30: { type: 'null' } } };
    expect(check(schema, {})).toEqual({ outcome: 'too_complex' });
  });

  test('of a tree that is looked at twice at each level', () => {
    const schema: Json = {
      $defs: {
        t: {
          anyOf: [
            { properties: { n: { $ref: '#/$defs/t' } }, required: ['x'] },
            { properties: { n: { $ref: '#/$defs/t' } } },
          ],
        },
      },
      $ref: '#/$defs/t',
    };
    let deep: Json = {};
    for (let level = 0; level < 60; level++) deep = { n: deep };
    expect(check(schema, deep)).toEqual({ outcome: 'too_complex' });
  });

  test('of a chain that is deep at once in the schema and in the payload', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 100 }, (_, index): [string, Json] => [
        `d${index}`,
        index === 99 ? { properties: { n: { $ref: '#' } } } : { $ref: `#/$defs/d${index + 1}` },
      ]),
    );
    let deep: Json = {};
    for (let level = 0; level < 100; level++) deep = { n: deep };
    const checked = check({ $ref: '#/$defs/d0', $defs }, deep, new StepBudget(1_000_000));
    expect(checked).toEqual({ outcome: 'too_complex' });
  });

  test('of a pattern over a long text, and of a long list without repeats', () => {
    const text = 'a'.repeat(60_000);
    expect(check({ pattern: '^(?:a{0,200}){2}$' }, text)).toEqual({ outcome: 'too_complex' });
    const items = Array.from({ length: 12_000 }, (_, index) => index);
    expect(check({ uniqueItems: true }, items)).toEqual({ outcome: 'too_complex' });
  });

  // Equal entries cost no budget: the schemas of one message kept intake busy for ten seconds.
  test('of a list that is read again for each schema, which stops at an entry that repeats another', () => {
    let readCount = 0;
    const items = new Proxy(Array<Json>(32_000).fill(0), {
      get(list, key) {
        if (/^\d/.test(String(key))) readCount++;
        return Reflect.get(list, key) as unknown;
      },
    });
    expect(check({ uniqueItems: true }, items)).toMatchObject({ outcome: 'invalid' });
    expect(readCount).toBeLessThan(10);
    const all = Array<Json>(100).fill({ $ref: '#/$defs/d1' });
    const $defs = { d0: { allOf: all }, d1: { uniqueItems: true } };
    const schema = { allOf: Array<Json>(100).fill({ $ref: '#/$defs/d0' }), $defs };
    expect(check(schema, items)).toEqual({ outcome: 'too_complex' });
  });

  test('enough for a list of 4,000 ids that differ', () => {
    const ids = Array.from({ length: 4_000 }, (_, index) => String(index).padStart(12, 'id'));
    expect(check({ uniqueItems: true, items: { type: 'string' } }, ids)).toEqual({
      outcome: 'valid',
    });
  });

  const LONG_TEXT = 'a'.repeat(60_000);
  const manyNames = (count: number): string[] => Array.from({ length: count }, () => 'b');
  const manyMembers = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, at]));

  // Each took up to 12 s, in which intake answered no workspace.
  test.each<[string, Json, Json]>([
    ['a pattern that the first character decides', { pattern: '.' }, LONG_TEXT],
    ['a pattern of a long name', { patternProperties: { '.': true } }, { [LONG_TEXT]: 1 }],
    ['a long name', { additionalProperties: true }, { [LONG_TEXT]: 1 }],
    ['many required names', { required: manyNames(3_000) }, {}],
    ['many names that others require', { dependentRequired: { a: manyNames(3_000) } }, { a: 1 }],
    ['many types', { type: Array.from({ length: 1_000 }, () => 'null') }, {}],
    ['a large constant', { const: manyMembers }, { a: 1 }],
    ['a large value among others', { enum: [1, manyMembers] }, { a: 1 }],
  ])('of %s, which is asked for again and again', (_, asked, payload) => {
    const schema: Json = {
      allOf: Array.from({ length: 500 }, () => ({ $ref: '#/$defs/a' })),
      $defs: { a: asked },
    };
    expect(check(schema, payload)).toEqual({ outcome: 'too_complex' });
    expect(check(asked, payload).outcome).not.toBe('too_complex');
  });
});
