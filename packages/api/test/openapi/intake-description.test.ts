/** The description of intake's calls: every example fits its schema, and bodies that intake refuses do not. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { INTAKE_PATHS, INTAKE_SCHEMAS } from '../../src/openapi/intake/intake-paths.ts';
import { PIPELINES_CALLS } from '../../src/openapi/intake/pipelines-calls.ts';
import { TRACK_CALLS } from '../../src/openapi/intake/track-calls.ts';

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
ajv.addSchema({ components: { schemas: INTAKE_SCHEMAS } }, 'openapi');
const fits = (schema: string, body: unknown): boolean =>
  ajv.validate({ $ref: `openapi#/components/schemas/${schema}` }, body);

test.each(
  [...PIPELINES_CALLS, ...TRACK_CALLS].flatMap(({ operationId, body, example }) =>
    body === undefined ? [] : [[operationId, body, example] as const],
  ),
)('the example of %s fits its schema', (_, schema, example) => {
  expect(example).toBeDefined();
  expect(fits(schema, example)).toBe(true);
});

test.each<readonly [schema: string, body: object, why: string]>([
  ['PipelinesTrack', { userId: 'ada' }, 'no event'],
  ['PipelinesTrack', { event: 'seen' }, 'nobody'],
  ['PipelinesTrack', { userId: 'ada', event: 'x'.repeat(101) }, 'a long name'],
  ['PipelinesGroup', { userId: 'ada' }, 'no group'],
  ['PipelinesBatch', { batch: [] }, 'no items'],
  ['PipelinesBatch', { batch: [{ userId: 'ada', event: 'seen' }] }, 'an item without a type'],
  ['TrackEvent', { data: {} }, 'no name'],
  ['TrackDevice', { device: { id: 't', platform: 'vax' } }, 'an unknown platform'],
  ['TrackSegmentMembers', { ids: [] }, 'nobody'],
  [
    'TrackEntity',
    { type: 'person', action: 'dance', identifiers: { id: 'a' } },
    'an unknown action',
  ],
  ['TrackEntity', { type: 'person', action: 'merge', primary: { id: 'a' } }, 'one person to merge'],
  [
    'TrackEntity',
    { type: 'person', action: 'delete', identifiers: { id: 'a', email: 'a@b.c' } },
    'two names',
  ],
  ['TrackForm', { data: { email: 'a@b.c', list: [1] } }, 'a field that is a list'],
])('%s refuses %j: %s', (schema, body) => {
  expect(fits(schema, body)).toBe(false);
});

test('each call that sends something documents the strict mode', () => {
  const without = Object.entries(INTAKE_PATHS).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'get')
      .filter(([, call]) => !JSON.stringify(call).includes('"X-Strict-Mode"'))
      .map(([method]) => `${method} ${path}`),
  );
  expect(without).toEqual([]);
});
