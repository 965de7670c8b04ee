import { expect, test } from 'vitest';
import {
  boundsText,
  describedFieldsOf,
  type Document,
} from '../../src/reference/described-call.ts';

const ONE = { properties: { name: { type: 'string' }, size: {} }, required: ['name', 'size'] };

const document: Document = {
  paths: {},
  components: {
    schemas: {
      // As a call that needs one of two names.
      Conditional: {
        allOf: [
          { properties: { name: { type: 'string' }, size: {} }, required: ['size'] },
          {
            anyOf: [{ properties: { name: {} }, required: ['name'] }, { properties: { nick: {} } }],
          },
        ],
      },
      One: ONE,
      Other: { properties: { name: { type: 'string' } }, required: ['name'] },
      Either: {
        anyOf: [{ $ref: '#/components/schemas/One' }, { $ref: '#/components/schemas/Other' }],
      },
      Word: { type: 'string', enum: ['on', 'off'] },
      Whole: { allOf: [{ $ref: '#/components/schemas/One' }] },
    },
  },
};

test.each([
  ['One', ['name*', 'size*']],
  ['Conditional', ['name', 'size*', 'nick']],
  ['Either', ['name*', 'size']],
  ['Whole', ['name*', 'size*']],
  ['Nothing', []],
])('the reference shows the fields of %s, and which of them every form requires', (name, shown) => {
  const fields = describedFieldsOf({ $ref: `#/components/schemas/${name}` }, document);
  expect(fields.map((each) => `${each.name}${each.isRequired ? '*' : ''}`)).toEqual(shown);
});

test.each([
  [
    { type: 'array', items: { type: 'string', enum: ['on', 'off'] } },
    'list of string; each one of `on`, `off`',
  ],
  [
    { type: 'array', maxItems: 2, items: { $ref: '#/components/schemas/Word' } },
    'list of string; at most 2 entries; each one of `on`, `off`',
  ],
  [
    { anyOf: [{ type: 'array', items: { $ref: '#/components/schemas/Word' } }, { type: 'null' }] },
    'list of string or null; each one of `on`, `off`',
  ],
  [{ type: 'array', items: { $ref: '#/components/schemas/One' } }, 'list of object'],
  [{ $ref: '#/components/schemas/Word' }, 'string; one of `on`, `off`'],
  [{ type: 'integer', minimum: 1, maximum: 100, default: 50 }, 'integer; default `50`; 1 to 100'],
])('the reference shows the values and bounds of %j', (schema, shown) => {
  expect(boundsText(schema, document)).toBe(shown);
});
