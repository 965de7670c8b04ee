/**
 * Documented bounds of the bodies and paths of intake.
 *
 * Intake takes each value that the description admits, and a bound of the description is a bound of intake. Without
 * strict mode a call is taken if it leaves no error: the answer is 200 in any case.
 */
import type { Parsed } from '@sluice/domain/parsing/parse';
import { parseDeleteDevice, parseSuppressPerson } from '@sluice/domain/track/track-v1';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import { parseUnsubscribe } from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { INTAKE_SCHEMAS } from '../../src/openapi/intake/intake-paths.ts';
import { PATH_PARAMETERS } from '../../src/openapi/intake/track-calls.ts';
import { CASES, CONTEXT, fitsOf, isTaken } from './intake-takes.ts';
import { type JsonSchema, OTHERS, type Probe, type ProbeWorld, probesOf } from './probes.ts';

const resolve = (reference: string): JsonSchema =>
  INTAKE_SCHEMAS[reference.split('/').at(-1) ?? ''] as JsonSchema;

/** The members of a sample by their names, so that a probe of one leaves the others as they are. */
function membersOf(sample: unknown, name: string): Record<string, unknown> {
  const inner = Array.isArray(sample)
    ? sample.slice(0, 1).map((entry) => membersOf(entry, `${name}[]`))
    : typeof sample === 'object' && sample !== null
      ? Object.entries(sample).map(([key, value]) => membersOf(value, key))
      : [];
  return Object.assign({ [name]: sample }, ...inner) as Record<string, unknown>;
}

const SAMPLES = { email: 'ada@example.com' };

/** A type is the recommended one. The code reads others too, such as a number for a text. */
const isOfType = ({ what }: Probe): boolean => what in OTHERS;

/** Bounds that a text in the description has, or that one form of several has. */
const ELSEWHERE: readonly (readonly [where: RegExp, why: string])[] = [
  [/^(?:\w+Batch|Published).*: 100,001 letters/, 'an item has a size'],
];

test.each(CASES)('the bounds of %s with %j are bounds of intake', (name, sample, take) => {
  const fits = fitsOf(name);
  const world: ProbeWorld = { resolve, samples: { ...SAMPLES, ...membersOf(sample, name) } };
  expect([fits(sample), isTaken(take(sample))]).toEqual([true, true]);
  const differing: string[] = [];
  for (const probe of probesOf(INTAKE_SCHEMAS[name] as JsonSchema, world, name)) {
    const [isDescribed, isRead] = [fits(probe.value), isTaken(take(probe.value))];
    if (isDescribed === isRead || (isRead && isOfType(probe))) continue;
    const place = `${name} ${probe.pointer}: ${probe.what}`;
    if (!ELSEWHERE.some(([where]) => where.test(place)))
      differing.push(`${place}: only ${isRead ? 'intake' : 'the description'} takes it`);
  }
  expect(differing).toEqual([]);
});

test.each<readonly [string, (text: string) => Parsed]>([
  ['identifier', (text) => parseSuppressPerson(text, CONTEXT)],
  ['device_id', (text) => parseDeleteDevice('ada', text, CONTEXT)],
  ['form_id', (text) => parseFormSubmission(text, { data: { id: 'ada' } }, CONTEXT)],
  ['segment_id', (text) => parseSegmentChange('add', text, '', { ids: ['ada'] }, CONTEXT)],
  ['delivery_id', (text) => parseUnsubscribe(text, { unsubscribe: true }, CONTEXT)],
])('the bounds of %s in a path are bounds of intake', (name, take) => {
  const { schema } = PATH_PARAMETERS[name] as { readonly schema: JsonSchema };
  const fits = new Ajv2020({ strict: false }).compile(schema);
  const type = schema.type === 'integer' ? 'number' : 'string';
  const probes = probesOf(schema, { resolve, samples: {} }, name)
    .filter(({ value }) => typeof value === type)
    .map(({ value }) => [value, fits(value), isTaken(take(String(value)))]);
  expect(probes.length).toBeGreaterThan(5);
  expect(probes.filter(([, isDescribed, isRead]) => isDescribed !== isRead)).toEqual([]);
});
