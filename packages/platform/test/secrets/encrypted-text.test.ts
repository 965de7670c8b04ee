import { expect, test } from 'vitest';
import { parseSettings, encryptionSettings } from '../../src/settings/config.ts';
import { createEncryptedText } from '../../src/secrets/encrypted-text.ts';

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const one = createEncryptedText([key('one', 1)]);

test('an encrypted text opens in its context, and looks different each time', () => {
  for (const text of ['a signing key', '', 'Grüße 🎉', 'x'.repeat(100_000), 'sealed:one:x']) {
    const encrypted = [
      one.encrypt(text, 'environment 1'),
      one.encrypt(text, 'environment 1'),
    ] as const;
    expect(encrypted[0]).not.toBe(encrypted[1]);
    expect(encrypted.map((each) => one.decrypt(each, 'environment 1'))).toEqual([text, text]);
    expect(encrypted[0].startsWith(one.prefix)).toBe(true);
  }
});

// Security: a secret that is copied to another tenant's row is of no use there.
test('it opens in no other context', () => {
  const encrypted = one.encrypt('secret', 'environment 1');
  expect(() => one.decrypt(encrypted, 'environment 2')).toThrow(
    expect.objectContaining({ code: 'SECRET_UNREADABLE' }),
  );
});

test('it does not open once any character of it is changed, cut or added', () => {
  const encrypted = one.encrypt('secret', 'c');
  for (let place = one.prefix.length; place < encrypted.length; place++) {
    const other = encrypted[place] === 'A' ? 'B' : 'A';
    const changed = encrypted.slice(0, place) + other + encrypted.slice(place + 1);
    // The last character's unused bits may be any.
    if (
      Buffer.from(changed.slice(one.prefix.length), 'base64url').equals(
        Buffer.from(encrypted.slice(one.prefix.length), 'base64url'),
      )
    )
      continue;
    expect(() => one.decrypt(changed, 'c')).toThrow('cannot be decrypted');
  }
  for (const bad of [encrypted.slice(0, -4), `${encrypted}AAAA`, one.prefix, `${one.prefix}AAAA`]) {
    expect(() => one.decrypt(bad, 'c')).toThrow(
      expect.objectContaining({ code: 'SECRET_UNREADABLE' }),
    );
  }
});

test('every key opens and the first encrypts; a key that is not there is named', () => {
  const both = createEncryptedText([key('two', 2), key('one', 1)]);
  expect(both.decrypt(one.encrypt('old', 'c'), 'c')).toBe('old');
  expect(() => one.decrypt(both.encrypt('new', 'c'), 'c')).toThrow('"two"');
});

test('another key of the same name does not open', () => {
  const impostor = createEncryptedText([key('one', 9)]);
  expect(() => impostor.decrypt(one.encrypt('x', 'c'), 'c')).toThrow('cannot be decrypted');
});

test('text from before there was a key opens as itself', () => {
  expect(one.decrypt('demo_signing_key', 'c')).toBe('demo_signing_key');
});

test('the setting takes one or more keys of 32 bytes, each with a name of its own', () => {
  const base64 = (fill: number, sizeBytes = 32) => Buffer.alloc(sizeBytes, fill).toString('base64');
  const parse = (text: string) => parseSettings(encryptionSettings, { SEALING_KEYS: text });
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
