import type { JsonObject } from '@sluice/domain/values/json';
import type { Parsed } from '@sluice/domain/parsing/parse';
import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import { parseAddDevice, parseIdentify } from '@sluice/domain/track/track-v1';
import { parseEntity } from '@sluice/domain/track/track-v2';
import { describe, expect, test } from 'vitest';
import { CONTEXT, nested, onlyIssue, operationOf, refusals, warnings } from '../support/parsing.ts';

const v1 = (body: unknown): Parsed => parseIdentify('u1', body, CONTEXT);
const traits = (value: unknown): Parsed =>
  parsePipelines('identify', { userId: 'u1', traits: value }, CONTEXT);
const attributesOf = (parsed: Parsed): JsonObject =>
  operationOf(parsed, 'person.identify').attributes;

describe('on every interface', () => {
  test('control keys are taken out and their meaning kept', () => {
    const sent = {
      plan: 'pro',
      _update: true,
      _timestamp: 1_714_559_999,
      anonymous_id: 'a1',
      svc_id: 'x',
      cio_id: 'y',
    };
    for (const parsed of [
      v1(sent),
      traits(sent),
      parseEntity(
        { type: 'person', action: 'identify', identifiers: { id: 'u1' }, attributes: sent },
        CONTEXT,
      ),
    ]) {
      expect(operationOf(parsed, 'person.identify')).toMatchObject({
        attributes: { plan: 'pro' },
        mayCreate: false,
        attributesAtMs: 1_714_559_999_000,
        anonymousId: 'a1',
      });
      expect(Object.keys(attributesOf(parsed))).toEqual(['plan']);
    }
  });

  test('a person may be created without _update, and if it is false', () => {
    expect(operationOf(v1({ _update: false }), 'person.identify').mayCreate).toBe(true);
    expect(operationOf(v1({}), 'person.identify').mayCreate).toBe(true);
  });

  test('null and empty values stay, for they remove the attribute', () => {
    expect(attributesOf(v1({ plan: null, nick: '' }))).toEqual({ plan: null, nick: '' });
    expect(attributesOf(traits({ plan: null, nick: '' }))).toEqual({ plan: null, nick: '' });
  });

  test("the field's names of subscription preferences become ours, dot-named ones too", () => {
    const sent = {
      cio_subscription_preferences: { topics: { topic_1: true } },
      'cio_subscription_preferences.topics.topic_2': false,
      cio_email_tracking_consent: true,
      cio_other: 1,
    };
    const stored = {
      svc_subscription_preferences: { topics: { topic_1: true } },
      'svc_subscription_preferences.topics.topic_2': false,
      svc_email_tracking_consent: true,
      cio_other: 1,
    };
    expect(attributesOf(v1(sent))).toEqual(stored);
    expect(attributesOf(traits(sent))).toEqual(stored);
  });

  test('if a call has both names, ours wins in either order', () => {
    const ours = { svc_subscription_preferences: { topics: { topic_1: true } } };
    const theirs = { cio_subscription_preferences: { topics: { topic_1: false } } };
    expect(attributesOf(v1({ ...ours, ...theirs }))).toEqual(ours);
    expect(attributesOf(v1({ ...theirs, ...ours }))).toEqual(ours);
  });

  test.each([
    '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"cio_email_tracking_consent":1}',
    '{"cio_email_tracking_consent":1,"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
  ])('__proto__ and constructor in %s are ordinary keys and change no prototype', (text) => {
    const sent: unknown = JSON.parse(text);
    for (const parsed of [v1(sent), traits(sent)]) {
      const attributes = attributesOf(parsed);
      expect(Object.getPrototypeOf(attributes)).toBe(Object.prototype);
      expect(JSON.stringify(attributes)).toBe(text.replace('cio_', 'svc_'));
    }
    const device = { id: 't', platform: 'ios', x: 1, attributes: sent };
    const added = operationOf(parseAddDevice('u1', { device }, CONTEXT), 'device.add').attributes;
    expect(Object.getPrototypeOf(added)).toBe(Object.prototype);
    expect(Object.keys(added).toSorted()).toEqual(
      ['__proto__', 'constructor', 'svc_email_tracking_consent', 'x'].toSorted(),
    );
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('__proto__ below the first level stays an ordinary key if its neighbours change', () => {
    const sent: unknown = JSON.parse('{"a":{"b":"x\\u0000","__proto__":{"admin":true}}}');
    for (const parsed of [v1(sent), traits(sent)]) {
      const inner = attributesOf(parsed).a as JsonObject;
      expect(Object.keys(inner)).toEqual(['b', '__proto__']);
      expect(Object.getPrototypeOf(inner)).toBe(Object.prototype);
    }
  });

  test('characters that Postgres refuses become U+FFFD, keys and nested texts too, with one warning', () => {
    const sent = { plan: 'a\0b', nest: [{ 'k\ud800': 'v\udc00' }] };
    for (const [parsed, field] of [
      [v1(sent), 'plan'],
      [traits(sent), 'traits.plan'],
    ] as const) {
      expect(attributesOf(parsed)).toEqual({ plan: 'a\ufffdb', nest: [{ 'k\ufffd': 'v\ufffd' }] });
      expect(warnings(parsed)).toEqual([`characters_replaced ${field}`]);
    }
  });

  test('a surrogate pair is left alone', () => {
    expect(attributesOf(v1({ mood: '😀' }))).toEqual({ mood: '😀' });
  });

  test('reading does not write to the object that was sent', () => {
    const sent = {
      plan: 'a\0',
      createdAt: '2024-05-01T00:00:00Z',
      nest: { at: '2024-05-01T00:00:00Z' },
      _update: true,
    };
    const before = structuredClone(sent);
    traits(sent);
    v1(sent);
    expect(sent).toEqual(before);
  });

  test('100 levels of nesting are taken, 101 are refused with the place named', () => {
    expect(v1({ deep: nested(99) }).operations).toHaveLength(1);
    expect(traits({ deep: nested(99) }).operations).toHaveLength(1);
    const issue = onlyIssue(traits({ deep: nested(100) }));
    expect(issue).toMatchObject({ code: 'invalid' });
    expect(issue.field).toMatch(/^traits\.deep\.a\.a/);
    expect(issue.message.length).toBeLessThanOrEqual(500);
    expect(refusals(traits({ deep: nested(10_000) }))).toHaveLength(1);
  });

  test('a number beyond a double is refused with the place named', () => {
    const sent: unknown = JSON.parse('{"scores":[1,{"high":1e999}]}');
    expect(refusals(v1(sent))).toEqual(['invalid scores.1.high']);
    expect(refusals(traits(sent))).toEqual(['invalid traits.scores.1.high']);
  });

  test.each(['9007199254740993', '-9223372036854775808', '18446744073709551615'])(
    'the whole number %s, which a double rounds, is taken with a warning that names the place',
    (number) => {
      const sent: unknown = JSON.parse(`{"orders":[1,{"order_id":${number}}]}`);
      expect(warnings(v1(sent))).toEqual(['number_rounded orders.1.order_id']);
      expect(warnings(traits(sent))).toEqual(['number_rounded traits.orders.1.order_id']);
    },
  );

  test('the largest exact whole number, and a number too large for an id, are taken as they are', () => {
    const sent = { exact: Number.MAX_SAFE_INTEGER, least: Number.MIN_SAFE_INTEGER, far: 1e300 };
    expect(attributesOf(v1(sent))).toEqual(sent);
    expect(warnings(v1(sent))).toEqual([]);
  });

  test('id and email are identifiers among the attributes too: exact, or refused', () => {
    expect(attributesOf(v1({ id: 7, email: 'ada@example.com' }))).toEqual({
      id: '7',
      email: 'ada@example.com',
    });
    expect(attributesOf(v1({ id: '', email: null }))).toEqual({ id: null, email: null });
    expect(refusals(v1({ id: 'x'.repeat(151) }))).toEqual(['too_long id']);
    expect(refusals(traits({ email: { at: 'home' } }))).toEqual(['invalid traits.email']);
    expect(refusals(traits({ email: 'a\0@example.com' }))).toEqual(['invalid traits.email']);
    expect(refusals(traits({ email: `${'a'.repeat(250)}@example.com` }))).toEqual([
      'too_long traits.email',
    ]);
  });

  test('created_at in milliseconds becomes seconds, with a warning', () => {
    const parsed = v1({ created_at: 1_714_559_999_123 });
    expect(attributesOf(parsed)).toEqual({ created_at: 1_714_559_999 });
    expect(warnings(parsed)).toEqual(['timestamp_in_milliseconds created_at']);
    expect(attributesOf(v1({ created_at: 1e12 }))).toEqual({ created_at: 1e9 });
    expect(attributesOf(v1({ created_at: 1e12 - 1 }))).toEqual({ created_at: 1e12 - 1 });
    expect(attributesOf(traits({ createdAt: 1_714_559_999_123 }))).toEqual({
      created_at: 1_714_559_999,
    });
  });
});

describe('on Track', () => {
  test('texts stay as they are, ISO 8601 too', () => {
    const sent = { createdAt: '2024-05-01T00:00:00Z', created_at: '2024-05-01T00:00:00Z' };
    expect(attributesOf(v1(sent))).toEqual(sent);
  });

  test('300 attributes are taken, 301 are refused, and control keys do not count', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, 1]));
    expect(v1({ ...many(300), _update: true }).operations).toHaveLength(1);
    const issue = onlyIssue(v1(many(301)));
    expect(issue).toMatchObject({ code: 'too_large', field: null });
    expect(issue.message).toBe('the body has 301 attributes; the bound is 300');
    const entity = {
      type: 'person',
      action: 'identify',
      identifiers: { id: 'u1' },
      attributes: many(301),
    };
    expect(refusals(parseEntity(entity, CONTEXT))).toEqual(['too_large attributes']);
  });

  test('an attribute name has at most 150 bytes', () => {
    expect(v1({ ['ü'.repeat(75)]: 1 }).operations).toHaveLength(1);
    const issue = onlyIssue(v1({ [`${'ü'.repeat(75)}x`]: 1 }));
    expect(issue).toMatchObject({ code: 'too_long' });
    expect(issue.message).toContain('is 151 bytes long; the bound is 150');
  });

  test('an attribute value has at most 1,000 bytes, of a structure its JSON', () => {
    expect(v1({ bio: 'ü'.repeat(500) }).operations).toHaveLength(1);
    expect(onlyIssue(v1({ bio: 'ü'.repeat(500) + 'x' }))).toMatchObject({
      code: 'too_long',
      field: 'bio',
      message: 'the value of bio is 1001 bytes long; the bound is 1000',
    });
    const list = (length: number) => ['x'.repeat(length - 4)];
    expect(v1({ list: list(1_000) }).operations).toHaveLength(1);
    const entity = {
      type: 'person',
      action: 'identify',
      identifiers: { id: 'u1' },
      attributes: { list: list(1_001) },
    };
    expect(onlyIssue(parseEntity(entity, CONTEXT))).toMatchObject({
      code: 'too_long',
      field: 'attributes.list',
      message: 'the value of attributes.list is 1001 bytes long; the bound is 1000',
    });
  });

  test('a sample shows the start of a long value, never a broken character', () => {
    const issue = onlyIssue(v1({ bio: `${'x'.repeat(199)}😀${'x'.repeat(2_000)}` }));
    expect(issue.sample).toBe(`${'x'.repeat(199)}\ufffd`);
  });
});

describe('on Pipelines', () => {
  test('createdAt becomes created_at, and gives way to one that is there', () => {
    expect(attributesOf(traits({ createdAt: '2024-05-01T00:00:00.900Z' }))).toEqual({
      created_at: 1_714_521_600,
    });
    expect(attributesOf(traits({ createdAt: '2020-01-01T00:00:00Z', created_at: 1 }))).toEqual({
      created_at: 1,
    });
  });

  test('full date-times with a zone become Unix seconds at any depth, and other texts stay', () => {
    const kept = {
      birthday: '1990-05-01',
      local: '2024-05-01T10:20:30',
      spaced: '2024-05-01 10:20:30Z',
      impossible: '2024-02-30T00:00:00Z',
      text: 'on 2024-05-01T10:20:30Z',
    };
    expect(
      attributesOf(
        traits({
          at: '2024-05-01T10:20:30.999Z',
          nest: [{ at: '2024-05-01T12:20:30+02:00' }],
          ...kept,
        }),
      ),
    ).toEqual({
      at: 1_714_558_830,
      nest: [{ at: 1_714_558_830 }],
      ...kept,
    });
  });

  test("Track's bounds on attributes do not apply", () => {
    expect(traits({ bio: 'x'.repeat(30_000), ['k'.repeat(200)]: 1 }).operations).toHaveLength(1);
  });
});
