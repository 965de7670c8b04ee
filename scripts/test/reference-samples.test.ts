/** The samples of the console's reference: each call of the served description has values that its schemas admit. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, expect, test } from 'vitest';
import { exampleBody, samplePath } from '../../packages/console/src/reference/call-example.ts';
import {
  bodyOf,
  callsOf,
  type Document,
} from '../../packages/console/src/reference/described-call.ts';
import { describeServices } from '../described-api.ts';

let document: Document;
beforeAll(async () => void (document = JSON.parse(await describeServices()) as Document));

test('the example of each body fits the schema of the body', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'document');
  const wrong = callsOf(document).flatMap((call) => {
    const content = bodyOf(call);
    if (!content) return [];
    const { body, raw } = exampleBody(call, document);
    // References lead to the document.
    const schema = JSON.parse(
      JSON.stringify(content.schema).replaceAll('"#/', '"document#/'),
    ) as object;
    const fits = ajv.validate(schema, raw ? raw.text : body);
    return fits ? [] : [{ call: call.operation.operationId, body, raw, why: ajv.errorsText() }];
  });
  expect(wrong).toEqual([]);
});

test('the address of each sample has its required parameters and no braces', () => {
  const calls = callsOf(document).filter(({ isDelivery }) => !isDelivery);
  expect(calls.length).toBeGreaterThan(160);
  const paths = new Map(
    calls.map((call) => [call.operation.operationId, samplePath(call, document, () => '').path]),
  );
  expect([...paths.values()].filter((path) => !/^\/[\w./?&=%-]*$/.test(path))).toEqual([]);
  expect(paths.get('getStatistics')).toBe('/v1/statistics?metric=events');
  expect(paths.get('trackDelete')).toBe('/api/v1/customers/ada');
});
