/** Keys that the service itself reads: a value that cannot be understood is an issue, never dropped silently. */
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
    ['in capital letters', { Topics: { Topic_1: false } }, []],
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
    '%j is not understood, and is reported',
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

  test('by a path outside of its group is put into it', () => {
    for (const prefix of [OURS, THEIRS])
      expect(identified({ [`${prefix}.topic_1`]: 'false', [`${prefix}.SMS`]: 0 })).toEqual({
        kept: { [`${OURS}.topics.topic_1`]: false, [`${OURS}.channels.sms`]: false },
        told: [`value_corrected ${prefix}.topic_1`, `value_corrected ${prefix}.SMS`],
      });
  });

  test.each([
    [{ topic: { topic_1: false } }, 'topic', {}],
    [{ topic_1: { subscribed: false } }, 'topic_1', {}],
    [{ 'topics.topic_1': false }, 'topics.topic_1', {}],
    [{ topics: { topic_1: { subscribed: false } } }, 'topics.topic_1', { topics: {} }],
    [{ topics: ['topic_1'] }, 'topics', {}],
    [{ topics: { 1: false } }, 'topics.1', { topics: { 1: false } }],
    [{ channels: { fax: false } }, 'channels.fax', { channels: { fax: false } }],
  ])('%j is told', (value, part, kept) => {
    expect(preferences(value)).toEqual({
      kept: { [OURS]: kept },
      told: [`value_not_understood ${THEIRS}.${part}`],
    });
  });

  test('in one of two spellings is not lost without a word', () => {
    expect(identified({ [OURS]: { topics: { topic_2: true } }, [THEIRS]: optOut })).toEqual({
      kept: { [OURS]: { topics: { topic_2: true } } },
      told: [`value_not_understood ${THEIRS}`],
    });
  });

  test('null or blank as a preference or a group asks for its removal', () => {
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
  test.each(['', ' ', '\u200b', null])('unsubscribed %j is absent, not false', (value) => {
    expect(identified({ unsubscribed: value })).toEqual({ kept: { unsubscribed: null }, told: [] });
  });

  test.each(['yes', 2, {}, []])('%j is not a flag, and is reported', (value) => {
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

test('relationships in two spellings are reported', () => {
  const ours = { action: 'add_relationships', relationships: [] };
  expect(identified({ svc_relationships: ours, cio_relationships: ours }).told).toEqual([
    'value_not_understood cio_relationships',
  ]);
});

describe('a device of a mobile event', () => {
  const opened = (device: unknown) =>
    parsePipelines(
      'track',
      { userId: 'u', event: 'Application Opened', context: { device } },
      CONTEXT,
    );

  test.each([
    ['ios', 'context.device'],
    [[], 'context.device'],
    [{ token: {} }, 'context.device.token'],
    [{ token: 't', type: 'web' }, 'context.device.type'],
  ])('%j is reported, and the event is kept', (device, field) => {
    const parsed = opened(device);
    expect(warnings(parsed)).toEqual([`value_not_understood ${field}`]);
    expect(parsed.operations.map(({ type }) => type)).toEqual(['event.track']);
  });

  test.each([null, '', {}, { token: ' ' }, { type: 'ios' }])('%j is none', (device) => {
    expect(opened(device).issues).toEqual([]);
  });
});

test('a form leaves out the keys that it has no use for, and reports them', () => {
  const data = { id: 'u', plan: 'pro', _update: 'true', _timestamp: '1', cio_relationships: 'x' };
  const parsed = parseFormSubmission('f', { data }, CONTEXT);
  expect(operationOf(parsed, 'form.submit').fields).toEqual({ plan: 'pro' });
  expect(warnings(parsed)).toEqual([
    'value_not_understood data._update',
    'value_not_understood data._timestamp',
    'value_not_understood data.cio_relationships',
  ]);
});

describe('an email that is invalid', () => {
  const call = (isStrict: boolean) =>
    parsePipelines(
      'identify',
      { userId: 'u', traits: { email: 'N/A', plan: 'pro' } },
      { ...CONTEXT, isStrict },
    );

  test('is left out with an issue and costs no other attribute; strict mode refuses it', () => {
    const parsed = call(false);
    expect(warnings(parsed)).toEqual(['email_invalid traits.email']);
    expect(operationOf(parsed, 'person.identify').attributes).toEqual({ plan: 'pro' });
    expect(refusals(call(true))).toEqual(['invalid traits.email']);
  });

  test('is the error if the call has no other identifier', () => {
    const parsed = parsePipelines('identify', { traits: { email: 'N/A' } }, CONTEXT);
    expect(refusals(parsed)).toEqual(['invalid traits.email']);
  });
});

describe('more traits than a person may have', () => {
  const many = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, index]));
  const call = (traits: JsonObject, isStrict: boolean) =>
    parsePipelines('identify', { userId: 'u', traits }, { ...CONTEXT, isStrict });

  test('are cut to 300 in permissive mode, the reserved ones are kept, and the rest is reported', () => {
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

  test('are counted together if they come in two places', () => {
    const traits = { ...many(200), objectAttributes: {} as JsonObject };
    for (let index = 0; index < 150; index++) traits.objectAttributes[`o${index}`] = index;
    const group = (isStrict: boolean) =>
      parsePipelines('group', { userId: 'u', groupId: 'g', traits }, { ...CONTEXT, isStrict });
    expect(refusals(group(true))).toEqual(['too_large traits']);
    expect(warnings(group(false))).toEqual(['attributes_left_out traits']);
    expect(Object.keys(operationOf(group(false), 'object.identify').attributes)).toHaveLength(300);
    const data = { id: 'u', ...many(301) };
    expect(refusals(parseFormSubmission('f', { data }, CONTEXT))).toEqual(['too_large data']);
  });

  test('are refused in strict mode, as on Track', () => {
    expect(refusals(call(many(1_000), true))).toEqual(['too_large traits']);
    expect(call(many(300), true).issues).toEqual([]);
  });
});
