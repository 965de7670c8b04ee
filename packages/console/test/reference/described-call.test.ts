import { expect, test } from 'vitest';
import { bodyFieldsOf, type Document } from '../../src/reference/described-call.ts';

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
  const fields = bodyFieldsOf({ $ref: `#/components/schemas/${name}` }, document);
  expect(fields.map((each) => `${each.name}${each.isRequired ? '*' : ''}`)).toEqual(shown);
});
