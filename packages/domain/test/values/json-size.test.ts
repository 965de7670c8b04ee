import { isJsonLargerThan, jsonSizeBytes } from '@sluice/domain/values/json-size';
import {
  isLongerThan,
  isStorableText,
  toStorableText,
  utf8SizeBytes,
} from '@sluice/domain/values/storable-text';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const anyText = fc.string({ unit: 'binary' });
const anyTextWithHalves = fc
  .array(fc.integer({ min: 0, max: 0xffff }))
  .map((units) => String.fromCharCode(...units));

describe('the size of a text', () => {
  test('is the size of its UTF-8', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, anyTextWithHalves), (text) => {
        expect(utf8SizeBytes(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });

  test('is held to a bound exactly at the bound', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 60 }), (text, bound) => {
        expect(isLongerThan(text, bound)).toBe(Buffer.byteLength(text) > bound);
      }),
    );
  });
});

describe('the size of a value', () => {
  test('is the size of its compact JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(jsonSizeBytes(value)).toBe(Buffer.byteLength(JSON.stringify(value)));
      }),
    );
  });

  test('counts every escape', () => {
    fc.assert(
      fc.property(anyTextWithHalves, (text) => {
        expect(jsonSizeBytes(text)).toBe(Buffer.byteLength(JSON.stringify(text)));
      }),
    );
  });

  test('is held to a bound exactly at the bound', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const sizeBytes = Buffer.byteLength(JSON.stringify(value));
        expect(isJsonLargerThan(value, sizeBytes)).toBe(false);
        expect(isJsonLargerThan(value, sizeBytes - 1)).toBe(true);
      }),
    );
  });

  test.each([-0.0000010000005108369212, -2.2250738585072014e-308])(
    'counts the digits of the longest number, %d',
    (number) => {
      const value = [number];
      const sizeBytes = JSON.stringify(value).length;
      expect(isJsonLargerThan(value, sizeBytes)).toBe(false);
      expect(isJsonLargerThan(value, sizeBytes - 1)).toBe(true);
    },
  );

  test('is found for a value nested 200,000 deep, at which recursion would overflow', () => {
    const value: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
    expect(isJsonLargerThan(value, 399_999)).toBe(true);
    expect(isJsonLargerThan(value, 400_000)).toBe(false);
  });
});

test('storable text has no U+0000 and no half of a surrogate pair, and its other characters stay', () => {
  fc.assert(
    fc.property(anyTextWithHalves, (text) => {
      const storable = toStorableText(text);
      expect(isStorableText(storable)).toBe(true);
      expect(storable).toHaveLength(text.length);
      if (isStorableText(text)) expect(storable).toBe(text);
    }),
  );
});
