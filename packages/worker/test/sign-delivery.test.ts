import { expect, test } from 'vitest';
import { signDelivery } from '../src/sign-delivery.ts';

test('a delivery is signed as the published vector says', () => {
  const key = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';
  expect(signDelivery(key, 1_692_633_432, '{"key": "value"}')).toBe(
    'd7c655389bb364d3e8bdbb6ec18a7f1b6cf91f39bba647554ada78aa61de37b9',
  );
});

test('the body is signed as its UTF-8 bytes', () => {
  expect(signDelivery('key', 1, '{"name":"Grüße 🎉"}')).toBe(
    'ffa35f28898c793c6f913b66dcfb5507f4ce2e0d00b6ccb54715a4a7251cb43c',
  );
});
