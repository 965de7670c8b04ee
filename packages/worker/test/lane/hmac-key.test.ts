import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HmacKey } from '../../src/lane/hmac-key.ts';

/**
 * Both kinds: keys that can stand in front of a text, and keys that cannot. They include keys that are hashed first.
 */
const anyKey = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 130 }),
  fc.string({ unit: 'binary', maxLength: 70 }),
  fc.uint8Array({ maxLength: 130 }).map((bytes) => Buffer.from(bytes)),
);
/** Half a surrogate pair too, which becomes U+FFFD. */
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\ud83d', 'é\udc00'));

test('it signs as Node does, for any key and text', () => {
  fc.assert(
    fc.property(
      anyKey,
      fc.array(anyText, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('hex', 'base64'),
      (key, texts, encoding) => {
        const hmacKey = new HmacKey(key);
        // More than one with a key: a text leaves no trace for the next.
        for (const text of texts)
          expect(hmacKey.sign(text, encoding)).toBe(
            createHmac('sha256', key).update(text).digest(encoding),
          );
      },
    ),
    { numRuns: 1_000 },
  );
});

// RFC 4231, sections 4.2, 4.3 and 4.7; the last one's key is longer than a block.
test.each([
  [
    Buffer.alloc(20, 0x0b),
    'Hi There',
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  ],
  [
    'Jefe',
    'what do ya want for nothing?',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  ],
  [
    Buffer.alloc(131, 0xaa),
    'Test Using Larger Than Block-Size Key - Hash Key First',
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
  ],
])('a published vector: %s', (key, text, signature) => {
  expect(new HmacKey(key).sign(text, 'hex')).toBe(signature);
});
