import { expect, test } from 'vitest';
import { parseSettings, sealingSettings } from '../../src/settings/config.ts';
import { createSealedText } from '../../src/secrets/sealed-text.ts';

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const one = createSealedText([key('one', 1)]);

test('what is sealed opens in its context, and looks different each time', () => {
  for (const text of ['a signing key', '', 'Grüße 🎉', 'x'.repeat(100_000), 'sealed:one:x']) {
    const sealed = [one.seal(text, 'environment 1'), one.seal(text, 'environment 1')] as const;
    expect(sealed[0]).not.toBe(sealed[1]);
    expect(sealed.map((each) => one.open(each, 'environment 1'))).toEqual([text, text]);
    expect(sealed[0].startsWith(one.prefix)).toBe(true);
  }
});

// Security: a secret that is copied to another tenant's row is of no use there.
test('it opens in no other context', () => {
  const sealed = one.seal('secret', 'environment 1');
  expect(() => one.open(sealed, 'environment 2')).toThrow(
    expect.objectContaining({ code: 'SECRET_UNREADABLE' }),
  );
});

test('it does not open once any character of it is changed, cut or added', () => {
  const sealed = one.seal('secret', 'c');
  for (let place = one.prefix.length; place < sealed.length; place++) {
    const other = sealed[place] === 'A' ? 'B' : 'A';
    const changed = sealed.slice(0, place) + other + sealed.slice(place + 1);
    // The last character's unused bits may be any.
    if (
      Buffer.from(changed.slice(one.prefix.length), 'base64url').equals(
        Buffer.from(sealed.slice(one.prefix.length), 'base64url'),
      )
    )
      continue;
    expect(() => one.open(changed, 'c')).toThrow('does not open');
  }
  for (const bad of [sealed.slice(0, -4), `${sealed}AAAA`, one.prefix, `${one.prefix}AAAA`]) {
    expect(() => one.open(bad, 'c')).toThrow(
      expect.objectContaining({ code: 'SECRET_UNREADABLE' }),
    );
  }
});

test('every key opens and the first seals; a key that is not there is named', () => {
  const both = createSealedText([key('two', 2), key('one', 1)]);
  expect(both.open(one.seal('old', 'c'), 'c')).toBe('old');
  expect(() => one.open(both.seal('new', 'c'), 'c')).toThrow('"two"');
});

test('another key of the same name does not open', () => {
  const impostor = createSealedText([key('one', 9)]);
  expect(() => impostor.open(one.seal('x', 'c'), 'c')).toThrow('does not open');
});

test('text from before there was a key opens as itself', () => {
  expect(one.open('demo_signing_key', 'c')).toBe('demo_signing_key');
});

test('the setting takes one or more keys of 32 bytes, each with a name of its own', () => {
  const base64 = (fill: number, sizeBytes = 32) => Buffer.alloc(sizeBytes, fill).toString('base64');
  const parse = (text: string) => parseSettings(sealingSettings, { SEALING_KEYS: text });
  const { SEALING_KEYS: keys } = parse(`b:${base64(2)}, a:${base64(1)}`);
  expect(keys.map(({ id }) => id)).toEqual(['b', 'a']);
  expect(keys[1]?.key).toEqual(Buffer.alloc(32, 1));
  for (const bad of [
    '',
    base64(1),
    `a:${base64(1, 31)}`,
    `a:${base64(1, 33)}`,
    `:${base64(1)}`,
    `a b:${base64(1)}`,
    `a:${base64(1)},`,
    `a:${base64(1)},a:${base64(2)}`,
  ]) {
    expect(() => parse(bad), bad).toThrow('SEALING_KEYS');
  }
  // Security: a key that is not one is not repeated in the message, which is logged.
  expect(() => parse('a:not-quite-a-key')).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('not-quite') }),
  );
});
