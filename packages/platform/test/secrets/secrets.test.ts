import {
  hashSecret,
  hasChecksum,
  newKey,
  newServiceAccountToken,
} from '@sluice/platform/secrets/secrets';
import { expect, test } from 'vitest';

test.each([
  [false, /^sa_live_[0-9A-Za-z]{49}$/],
  [true, /^sa_sandbox_[0-9A-Za-z]{49}$/],
])(
  'a token (sandbox: %s) has its prefix, 43 random characters and a checksum',
  (isSandbox, shape) => {
    const tokens = Array.from({ length: 200 }, () => newServiceAccountToken(isSandbox));
    for (const { text, hash, hint } of tokens) {
      expect(text).toMatch(shape);
      expect(hasChecksum(text)).toBe(true);
      expect(hash).toEqual(hashSecret(text));
      expect(text.endsWith(hint)).toBe(true);
      expect(hint).toHaveLength(4);
    }
    expect(new Set(tokens.map(({ text }) => text)).size).toBe(tokens.length);
  },
);

test('a token with one character changed has no checksum', () => {
  const { text } = newServiceAccountToken(false);
  const at = 20;
  const changed = text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1);
  expect(hasChecksum(changed)).toBe(false);
});

test('a key is as long as asked for', () => {
  expect(newKey(20).text).toMatch(/^[0-9A-Za-z]{20}$/);
});
