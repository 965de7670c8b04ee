/** One-time passwords: the vectors of their standards, and when a code is good. */
import { expect, test } from 'vitest';
import {
  fromBase32,
  newPasswordSecret,
  newRecoveryCodes,
  passwordOfStep,
  passwordUri,
  plainRecoveryCode,
  STEP_MS,
  stepOfPassword,
  toBase32,
} from '../../src/secrets/one-time-password.ts';

const SECRET = Buffer.from('12345678901234567890');

test('RFC 4226, appendix D', () => {
  expect(Array.from({ length: 10 }, (_, step) => passwordOfStep(SECRET, step))).toEqual([
    ...['755224', '287082', '359152', '969429', '338314'],
    ...['254676', '287922', '162583', '399871', '520489'],
  ]);
});

test.each([
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
])('RFC 6238, appendix B, SHA-1: at %i s', (seconds, password) => {
  expect(passwordOfStep(SECRET, Math.floor((seconds * 1000) / STEP_MS), 8)).toBe(password);
});

test.each([
  ['', ''],
  ['f', 'MY'],
  ['fo', 'MZXQ'],
  ['foo', 'MZXW6'],
  ['foob', 'MZXW6YQ'],
  ['fooba', 'MZXW6YTB'],
  ['foobar', 'MZXW6YTBOI'],
])('RFC 4648, section 10, without padding: %j', (text, encoded) => {
  expect(toBase32(Buffer.from(text))).toBe(encoded);
  expect(fromBase32(encoded).toString()).toBe(text);
});

test('a code is good in its step, the one before and the one after, to the millisecond', () => {
  const step = 57_000_000;
  const code = passwordOfStep(SECRET, step);
  const at = (ms: number) => stepOfPassword(SECRET, code, step * STEP_MS + ms);
  expect(at(-STEP_MS - 1)).toBeUndefined();
  expect([at(-STEP_MS), at(0), at(STEP_MS), at(2 * STEP_MS - 1)]).toEqual(Array(4).fill(step));
  expect(at(2 * STEP_MS)).toBeUndefined();
});

test('a wrong, short, empty, long or non-ASCII code is refused', () => {
  for (const text of ['000000', '75522', '', '7552240', '７５５２２４'])
    expect(stepOfPassword(SECRET, text, 0 + STEP_MS * 100)).toBeUndefined();
});

test('a secret has 160 bits, opens as it was made, and stands in the address that an app reads', () => {
  const secret = newPasswordSecret();
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(toBase32(fromBase32(secret))).toBe(secret);
  const uri = new URL(passwordUri(secret, 'ada+1@example.com'));
  expect([uri.protocol, uri.host, decodeURIComponent(uri.pathname)]).toEqual([
    'otpauth:',
    'totp',
    '/Sluice:ada+1@example.com',
  ]);
  expect(Object.fromEntries(uri.searchParams)).toEqual({ secret, issuer: 'Sluice' });
});

test('ten recovery codes differ, and are read however they are typed', () => {
  const codes = newRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) {
    expect(code).toMatch(/^(?:[A-Z2-7]{4}-){3}[A-Z2-7]{4}$/);
    expect(plainRecoveryCode(` ${code.toLowerCase().replaceAll('-', ' ')}\n`)).toBe(
      plainRecoveryCode(code),
    );
  }
});
