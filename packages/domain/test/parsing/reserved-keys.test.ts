/** Keys that the service itself reads: what cannot be understood of them is an issue, never dropped without a word. */
import type { JsonObject } from '@sluice/domain/values/json';
import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import { parseIdentify } from '@sluice/domain/track/track-v1';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import { describe, expect, test } from 'vitest';
import { CONTEXT, operationOf, refusals, warnings } from '../support/parsing.ts';

const identified = (attributes: unknown) => {
  const parsed = parseIdentify('u', attributes, CONTEXT);
  return { kept: operationOf(parsed, 'person.identify').attributes, told: warnings(parsed) };
};
const preferences = (value: unknown) => identified({ cio_subscription_preferences: value });
const optOut = { topics: { topic_1: false } };
const OURS = 'svc_subscription_preferences';
const THEIRS = 'cio_subscription_preferences';

describe('an opt-out', () => {
  test.each([
    ['as an object', optOut, []],
    ['as the JSON of one', JSON.stringify(optOut), []],
    ['with blanks around it', ` ${JSON.stringify(optOut)}\n`, []],
    ['with a group as JSON', { topics: '{"topic_1":"False"}' }, []],
    ['outside of topics', { topic_1: false }, [`value_corrected ${THEIRS}.topic_1`]],
    ['outside of topics, as JSON', '{"topic_1":0}', [`value_corrected ${THEIRS}.topic_1`]],
    ['in a word', { topics: { topic_1: 'no' } }, [`value_not_understood ${THEIRS}.topics.topic_1`]],
  ])('is kept %s', (_, value, told) => {
    expect(preferences(value)).toEqual({ kept: { [OURS]: optOut }, told });
  });

  test('of a channel outside of channels is put there', () => {
    expect(preferences({ email: false, ...optOut })).toEqual({
      kept: { [OURS]: { channels: { email: false }, ...optOut } },
      told: [`value_corrected ${THEIRS}.email`],
    });
  });

  test.each([['unsubscribe me'], [[{ topic_1: false }]], [true], [7], ['{"topics"']])(
    '%j is not understood, and told',
    (value) => {
      expect(preferences(value)).toEqual({ kept: {}, told: [`value_not_understood ${THEIRS}`] });
    },
  );

  test('that is not understood beside one that is leaves the other', () => {
    expect(preferences({ ...optOut, weekly: false, daily: ['x'] })).toEqual({
      kept: { [OURS]: optOut },
      told: [`value_not_understood ${THEIRS}.weekly`, `value_not_understood ${THEIRS}.daily`],
    });
  });

  test('by its path is read by the same rule', () => {
    expect(identified({ [`${THEIRS}.topics.topic_1`]: 'FALSE' })).toEqual({
      kept: { [`${OURS}.topics.topic_1`]: false },
      told: [],
    });
    expect(identified({ [`${THEIRS}.topics`]: 'none' })).toEqual({
      kept: {},
      told: [`value_not_understood ${THEIRS}.topics`],
    });
  });

  test('null and blank ask for the removal of what they are given for', () => {
    expect(preferences(null)).toEqual({ kept: { [OURS]: null }, told: [] });
    expect(preferences({ topics: { topic_1: '' }, channels: null })).toEqual({
      kept: { [OURS]: { topics: { topic_1: null }, channels: null } },
      told: [],
    });
  });

  test('comes from a form under the same name', () => {
    const data = { id: 'u', [THEIRS]: JSON.stringify(optOut) };
    const parsed = parseFormSubmission('f', { data }, CONTEXT);
    expect(operationOf(parsed, 'form.submit').fields).toEqual({ [OURS]: optOut });
  });

  test('an attribute whose name only begins like it is an attribute', () => {
    expect(identified({ [`${OURS}_old`]: 'x' })).toEqual({
      kept: { [`${OURS}_old`]: 'x' },
      told: [],
    });
  });
});

describe('flags', () => {
  test.each(['yes', 2, {}, []])('%j is neither true nor false, which is told', (value) => {
    expect(identified({ unsubscribed: value }).told).toEqual(['value_not_understood unsubscribed']);
    expect(identified({ _update: value }).told).toEqual(['value_not_understood _update']);
  });
});

test('relationships may come as JSON', () => {
  const relationships = {
    action: 'add_relationships',
    relationships: [{ identifiers: { object_type_id: 1, object_id: 'acme' } }],
  };
  const parsed = parseIdentify('u', { cio_relationships: JSON.stringify(relationships) }, CONTEXT);
  expect(operationOf(parsed, 'person.identify').relationships?.entries).toHaveLength(1);
  expect(refusals(parseIdentify('u', { cio_relationships: 'acme' }, CONTEXT))).toEqual([
    'invalid cio_relationships',
  ]);
});

describe('an email that is none', () => {
  const call = (isStrict: boolean) =>
    parsePipelines(
      'identify',
      { userId: 'u', traits: { email: 'N/A', plan: 'pro' } },
      { ...CONTEXT, isStrict },
    );

  test('identifies nobody and costs no other attribute; strict mode refuses it', () => {
    const parsed = call(false);
    expect(warnings(parsed)).toEqual(['email_invalid traits.email']);
    expect(operationOf(parsed, 'person.identify').attributes).toEqual({ plan: 'pro' });
    expect(refusals(call(true))).toEqual(['invalid traits.email']);
  });

  test('is the error where nothing else identifies anybody', () => {
    const parsed = parsePipelines('identify', { traits: { email: 'N/A' } }, CONTEXT);
    expect(refusals(parsed)).toEqual(['invalid traits.email']);
  });
});

describe('more traits than a person may have', () => {
  const many = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, index]));
  const call = (traits: JsonObject, isStrict: boolean) =>
    parsePipelines('identify', { userId: 'u', traits }, { ...CONTEXT, isStrict });

  test('300 are kept in permissive mode, the reserved ones among them, and the rest is told', () => {
    const traits = { ...many(1_000), email: 'ada@example.com', unsubscribed: true };
    const parsed = call(traits, false);
    expect(warnings(parsed)).toEqual(['attributes_left_out traits']);
    const { attributes } = operationOf(parsed, 'person.identify');
    expect(Object.keys(attributes)).toHaveLength(300);
    expect(attributes).toMatchObject({ t0: 0, t297: 297, email: 'ada@example.com' });
    expect(attributes).toHaveProperty('unsubscribed', true);
    expect(attributes).not.toHaveProperty('t298');
    expect(parsed.issues[0]?.message).toBe(
      'traits has 1002 attributes; the bound is 300; 300 are kept, the first that is left out is t298',
    );
  });

  test('are refused in strict mode, as on Track', () => {
    expect(refusals(call(many(1_000), true))).toEqual(['too_large traits']);
    expect(call(many(300), true).issues).toEqual([]);
  });
});
