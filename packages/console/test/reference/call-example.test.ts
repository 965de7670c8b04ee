import { expect, test } from 'vitest';
import { exampleBody, samplePath } from '../../src/reference/call-example.ts';
import { callsOf, type DescribedCall, type Operation } from '../../src/reference/described-call.ts';

const ID = { name: 'hook_id', in: 'path', required: true, schema: { type: 'integer', minimum: 1 } };

function call(method: string, path: string, operation: Partial<Operation>): DescribedCall {
  const document = { paths: { [path]: { [method]: { operationId: 'one', ...operation } } } };
  const [only] = callsOf(document);
  if (!only) throw new Error('there is no call');
  return only;
}
const filled = (given: DescribedCall, known = ''): ReturnType<typeof samplePath> =>
  samplePath(given, { paths: {} }, () => known);

test('required parameters are filled in with the examples of the document, and others are left out', () => {
  const parameters = [
    { name: 'id', in: 'path', required: true, example: 'a b', schema: {} },
    { name: 'plan', in: 'path', required: true, schema: { examples: ['pro'], enum: ['free'] } },
    { name: 'metric', in: 'query', required: true, schema: { enum: ['events', 'people'] } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1 } },
    { name: 'X-Strict-Mode', in: 'header', schema: { type: 'string' } },
  ];
  expect(filled(call('get', '/v1/{id}/{plan}', { parameters }))).toEqual({
    path: '/v1/a%20b/pro?metric=events',
    placeholders: [],
  });
});

test('a parameter without an example is a guessed number in a read, and a word to replace in a change', () => {
  const given = { parameters: [ID] };
  expect(filled(call('get', '/v1/{hook_id}', given)).path).toBe('/v1/1');
  expect(filled(call('delete', '/v1/{hook_id}', given))).toEqual({
    path: '/v1/HOOK_ID',
    placeholders: ['HOOK_ID'],
  });
  expect(filled(call('delete', '/v1/{hook_id}', given), '7').path).toBe('/v1/7');
  const text = { parameters: [{ ...ID, schema: { type: 'string' } }] };
  expect(filled(call('get', '/v1/{hook_id}', text)).path).toBe('/v1/HOOK_ID');
});

test('a body that is no JSON is sent as its example, with its type', () => {
  const lines = { 'application/x-ndjson': { schema: { type: 'string' }, example: '{}\n' } };
  const stream = call('post', '/v1/stream', { requestBody: { content: lines } });
  expect(exampleBody(stream, { paths: {} })).toEqual({
    raw: { type: 'application/x-ndjson', text: '{}\n' },
  });
  const content = { ...lines, 'application/json': { example: { a: 1 } } };
  const both = call('post', '/v1/stream', { requestBody: { content } });
  expect(exampleBody(both, { paths: {} })).toEqual({ body: { a: 1 } });
  expect(exampleBody(call('post', '/v1/stream', {}), { paths: {} })).toEqual({});
});
