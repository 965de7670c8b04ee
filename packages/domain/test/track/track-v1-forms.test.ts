import type { Parsed } from '@sluice/domain/parsing/parse';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import { describe, expect, test } from 'vitest';
import { BASE, CONTEXT, onlyOperation, operationOf, refusals } from '../support/parsing.ts';

describe('forms', () => {
  const submit = (data: unknown): Parsed => parseFormSubmission('f1', { data }, CONTEXT);

  test('are submitted by exactly one of id and email, whose value is no field', () => {
    const data = {
      email: 'ada@example.com',
      first_name: 'Ada',
      age: 36,
      newsletter: true,
      nick: '',
      form_name: 'x',
      form_url_param: 'y',
    };
    expect(onlyOperation(submit(data))).toStrictEqual({
      ...BASE,
      type: 'form.submit',
      formId: 'f1',
      person: { kind: 'email', value: 'ada@example.com' },
      fields: { first_name: 'Ada', age: '36', newsletter: 'true' },
    });
    expect(onlyOperation(submit({ id: 'u1' }))).toMatchObject({
      person: { kind: 'id', value: 'u1' },
      fields: {},
    });
    expect(refusals(submit({ id: 'u1', email: 'ada@example.com' }))).toEqual(['invalid data']);
    expect(refusals(submit({ first_name: 'Ada' }))).toEqual(['required data']);
  });

  test('name an anonymous id as exactly as other calls do', () => {
    expect(onlyOperation(submit({ id: 'u1', anonymous_id: 'a1' }))).toMatchObject({
      fields: { anonymous_id: 'a1' },
    });
    expect(refusals(submit({ id: 'u1', anonymous_id: 'a'.repeat(151) }))).toEqual([
      'too_long data.anonymous_id',
    ]);
    expect(refusals(submit({ id: 'u1', anonymous_id: 'a\0' }))).toEqual([
      'invalid data.anonymous_id',
    ]);
  });

  test('hold no structures', () => {
    expect(refusals(submit({ id: 'u1', tags: ['a'] }))).toEqual(['invalid data.tags']);
    expect(refusals(submit(null))).toEqual(['required data']);
    expect(refusals(submit([]))).toEqual(['invalid data']);
  });

  test('of thousands of hostile fields are refused as a whole, with twenty issues at most', () => {
    const fieldsOf = (count: number, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, value]));
    const structures = submit({ id: 'u1', ...fieldsOf(5_000, { deep: [[]] }) });
    expect(structures.operations).toEqual([]);
    expect(structures.issues).toHaveLength(20);
    expect(structures.issues[0]).toMatchObject({ field: 'data.f0' });
    const many = submit({ id: 'u1', ...fieldsOf(5_000, 'x') });
    expect(many.operations).toEqual([]);
    expect(refusals(many)).toEqual(['too_large data']);
    const [issue] = submit({ id: 'u1', ['k'.repeat(20_000)]: [] }).issues;
    expect(JSON.stringify(issue).length).toBeLessThan(2_000);
  });

  test('keep __proto__ an ordinary field', () => {
    const operation = operationOf(submit(JSON.parse('{"id":"u1","__proto__":"x"}')), 'form.submit');
    expect(Object.entries(operation.fields)).toEqual([['__proto__', 'x']]);
  });
});
