import { recognisePerson } from '@sluice/domain/parsing/identifiers';
import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import { parseEntity } from '@sluice/domain/track/track-v2';
import { isEmail } from '@sluice/domain/value-rules/identifier-rule';
import { VALUE_RULES } from '@sluice/domain/value-rules/value-rules';
import { describe, expect, test } from 'vitest';
import { CONTEXT, onlyIssue, onlyOperation, refusals } from '../support/parsing.ts';

const deletePerson = (userId: unknown) =>
  parsePipelines('track', { userId, event: 'User Deleted' }, CONTEXT);
const personOf = (userId: unknown) => {
  const operation = onlyOperation(deletePerson(userId));
  return 'person' in operation ? operation.person : undefined;
};
const deleteEntity = (identifiers: unknown, phoneIdentifies = false) =>
  parseEntity({ type: 'person', action: 'delete', identifiers }, { ...CONTEXT, phoneIdentifies });

describe('an email address', () => {
  test.each([
    'ada@example.com',
    'Ada.Lovelace+news@mail.example.co.uk',
    "o'brien@example.ie",
    'ada@xn--bcher-kva.example',
    'ада@почта.рф',
    'a@b.co',
  ])('%s is one', (text) => {
    expect(isEmail(text)).toBe(true);
  });

  test.each([
    'ada',
    'ada@example',
    '@example.com',
    'ada@',
    'ada@.com',
    'ada@example..com',
    'ada@example.c',
    'ada@@example.com',
    'ada@example.com@example.com',
    'ada lovelace@example.com',
    ' ada@example.com',
    'ada@example.com ',
    'Ada <ada@example.com>',
    'mailto:ada@example.com',
    'a,b@example.com',
    'ada@[127.0.0.1]',
    'a\0@example.com',
    'a\u200bda@example.com',
    'ada\u202e@example.com',
    'a\u00adda@example.com',
  ])('%j is none', (text) => {
    expect(isEmail(text)).toBe(false);
  });

  test('is checked in linear time', () => {
    const hostile = `${'a'.repeat(100_000)}@${'a.'.repeat(100_000)}`;
    const startedAt = performance.now();
    expect(isEmail(hostile)).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});

describe('invisible characters at the ends of an identifier', () => {
  test.each([
    ['blanks and tabs', ' \t', '\v\f '],
    ['line breaks, of Unicode too', '\r\n', '\u0085\u2028\u2029'],
    ['separators of files and records', '\x1c\x1d', '\x1e\x1f'],
    ['blanks that do not break', '\u00a0\u202f', '\u3000\u1680'],
    ['characters without width', '\ufeff\u200b\u2060', '\u200c\u200d\u00ad\u180e'],
    ['marks of direction', '\u200e\u202a\u2066', '\u2069\u202c\u200f'],
  ])('%s are cut, and the cut is reported', (_, before, behind) => {
    const judged = (text: string) => VALUE_RULES.identifier(text, 150);
    const read = { outcome: 'read', value: 'a \u200b b', change: 'trimmed' };
    expect(judged(`${before}a \u200b b${behind}`)).toEqual(read);
    expect(judged(`a \u200b b${behind}`)).toEqual(read);
    expect(judged(`${before}${behind}`)).toEqual({ outcome: 'absent' });
    expect(judged('a \u200b b')).toEqual({ outcome: 'read', value: 'a \u200b b' });
  });
});

describe('one value that may be any identifier', () => {
  test.each([
    ['user-1', 'id', 'user-1'],
    ['ada@example.com', 'email', 'ada@example.com'],
    ['cio_a3000001', 'svc_id', 'a3000001'],
    ['svc_a3000001', 'svc_id', 'a3000001'],
    ['+4915112345678', 'id', '+4915112345678'],
    ['cio_', 'id', 'cio_'],
    ['svc_cafe', 'id', 'svc_cafe'],
    ['svc_payments', 'id', 'svc_payments'],
  ])('%s is known by its shape as %s', (text, kind, value) => {
    expect(recognisePerson(text)).toEqual({ kind, value });
  });

  test('a number counts as its text', () => {
    expect(personOf(42)).toEqual({ kind: 'id', value: '42' });
  });

  test('a number with more digits than a double keeps is refused: two people would become one', () => {
    expect(refusals(deletePerson(JSON.parse('12345678901234567890')))).toEqual(['invalid userId']);
  });

  test.each([null, '', '   ', undefined])('%j is absent', (userId) => {
    expect(refusals(deletePerson(userId))).toEqual(['required userId']);
  });

  test.each([[true], [[]], [{}]])('%j is refused', (userId) => {
    expect(refusals(deletePerson(userId))).toEqual(['invalid userId']);
  });

  test.each(['a\0', '\ud800', 'a\udc00b'])(
    '%j cannot be kept exactly and is refused, never mended',
    (userId) => {
      expect(refusals(deletePerson(userId))).toEqual(['invalid userId']);
    },
  );

  test('an id has at most 150 bytes of UTF-8, and the message names field, length and bound', () => {
    expect(personOf('ü'.repeat(75))).toEqual({ kind: 'id', value: 'ü'.repeat(75) });
    const issue = onlyIssue(deletePerson(`${'ü'.repeat(75)}!`));
    expect(issue).toMatchObject({ code: 'too_long', field: 'userId' });
    expect(issue.message).toBe('userId is 151 bytes long; the bound is 150');
  });

  test('an email has at most 254 bytes', () => {
    const email = (length: number) => `${'a'.repeat(length - 12)}@example.com`;
    expect(personOf(email(254))).toEqual({ kind: 'email', value: email(254) });
    expect(refusals(deletePerson(email(255)))).toEqual(['too_long userId']);
  });
});

describe('identifiers of Track v2', () => {
  test.each([
    [{ id: 'u1' }, { kind: 'id', value: 'u1' }],
    [{ id: 7 }, { kind: 'id', value: '7' }],
    [{ id: 'ada@example.com' }, { kind: 'id', value: 'ada@example.com' }],
    [{ email: 'ada@example.com' }, { kind: 'email', value: 'ada@example.com' }],
    [{ cio_id: 'a3000001' }, { kind: 'svc_id', value: 'a3000001' }],
    [{ svc_id: 'a3000001' }, { kind: 'svc_id', value: 'a3000001' }],
    [{ cio_id: 'cio_a3000001' }, { kind: 'svc_id', value: 'a3000001' }],
    [
      { id: 'u1', email: null },
      { kind: 'id', value: 'u1' },
    ],
  ])('the key of %j decides the kind of identifier', (identifiers, person) => {
    expect(onlyOperation(deleteEntity(identifiers))).toMatchObject({ person });
  });

  test('exactly one must be there', () => {
    expect(refusals(deleteEntity({}))).toEqual(['required identifiers']);
    expect(refusals(deleteEntity({ id: '' }))).toEqual(['required identifiers']);
    expect(refusals(deleteEntity({ id: 'u1', email: 'ada@example.com' }))).toEqual([
      'invalid identifiers',
    ]);
    expect(refusals(deleteEntity(null))).toEqual(['required identifiers']);
    expect(refusals(deleteEntity('u1'))).toEqual(['invalid identifiers']);
  });

  test('a phone number identifies only if the workspace lets it, and only in E.164 form', () => {
    const phone = '+4915112345678';
    expect(refusals(deleteEntity({ phone }))).toEqual(['unsupported identifiers.phone']);
    expect(onlyOperation(deleteEntity({ phone }, true))).toMatchObject({
      person: { kind: 'phone', value: phone },
    });
    for (const wrong of ['4915112345678', '+0123456789', '+49 151 12345678', '+1']) {
      expect(refusals(deleteEntity({ phone: wrong }, true))).toEqual(['invalid identifiers.phone']);
    }
  });

  test('an anonymous id cannot be deleted', () => {
    expect(refusals(deleteEntity({ anonymous_id: 'a1' }))).toEqual(['required identifiers']);
  });

  test.each([
    [
      { object_type_id: '1', object_id: 'acme' },
      { objectTypeId: 1, objectId: 'acme' },
    ],
    [
      { object_type_id: 2, object_id: 5 },
      { objectTypeId: 2, objectId: '5' },
    ],
    [{ cio_object_id: 'ob000001' }, { svcObjectId: 'ob000001' }],
    [{ svc_object_id: 'ob000001' }, { svcObjectId: 'ob000001' }],
  ])('%j names an object', (identifiers, object) => {
    const parsed = parseEntity({ type: 'object', action: 'delete', identifiers }, CONTEXT);
    expect(onlyOperation(parsed)).toMatchObject({ object });
  });

  test.each([
    [{ object_id: 'acme' }, 'required identifiers.object_type_id'],
    [{ object_type_id: '0', object_id: 'acme' }, 'invalid identifiers.object_type_id'],
    [{ object_type_id: 1.5, object_id: 'acme' }, 'invalid identifiers.object_type_id'],
    [{ object_type_id: 'company', object_id: 'acme' }, 'invalid identifiers.object_type_id'],
    [{ object_type_id: 2_147_483_648, object_id: 'acme' }, 'invalid identifiers.object_type_id'],
    [{ object_type_id: 1 }, 'required identifiers.object_id'],
    [{ object_type_id: 1, object_id: 'a'.repeat(151) }, 'too_long identifiers.object_id'],
    [{ object_type_id: 1, object_id: 'acme', svc_object_id: 'ob000001' }, 'invalid identifiers'],
  ])('%j names no object', (identifiers, refusal) => {
    expect(
      refusals(parseEntity({ type: 'object', action: 'delete', identifiers }, CONTEXT)),
    ).toEqual([refusal]);
  });
});
