import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { DeliverySigner, type SigningTarget } from '../../src/lane/sign-delivery.ts';

const PUBLISHED_KEY = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';
const AT_MS = 1_692_633_432_999;

const signer = (changes: Partial<SigningTarget>) =>
  new DeliverySigner(
    {
      signingKey: 'old',
      nextSigningKey: null,
      nextSignsFromMs: null,
      standardWebhooks: false,
      signing: 'sluice',
      customHeaders: null,
      ...changes,
    },
    (encrypted) => encrypted,
  );

test('a delivery is signed like the published vector', () => {
  const headers = signer({ signingKey: PUBLISHED_KEY }).headers('id', '{"key": "value"}', AT_MS);
  expect(headers).toMatchObject({
    'x-svc-timestamp': '1692633432',
    'x-svc-signature': 'd7c655389bb364d3e8bdbb6ec18a7f1b6cf91f39bba647554ada78aa61de37b9',
  });
  expect(Object.keys(headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
  expect(headers).not.toHaveProperty('x-svc-signature-next');
});

test('the body is signed as its UTF-8 bytes', () => {
  const headers = signer({ signingKey: 'key' }).headers('id', '{"name":"Grüße 🎉"}', 1_000);
  expect(headers['x-svc-signature']).toBe(
    'ffa35f28898c793c6f913b66dcfb5507f4ce2e0d00b6ccb54715a4a7251cb43c',
  );
});

test('both keys sign until the moment of the promotion, from when on the new one alone does', () => {
  const rotating = signer({ nextSigningKey: 'new', nextSignsFromMs: AT_MS });
  const expected = (key: string) =>
    createHmac('sha256', key).update('v0:1692633432:body').digest('hex');
  expect(rotating.headers('id', 'body', AT_MS - 1)).toMatchObject({
    'x-svc-signature': expected('old'),
    'x-svc-signature-next': expected('new'),
  });
  const after = rotating.headers('id', 'body', AT_MS);
  expect(after['x-svc-signature']).toBe(expected('new'));
  expect(after).not.toHaveProperty('x-svc-signature-next');
});

test.each([
  ['order 1.é\n', 'order%201%2E%C3%A9%0A'],
  ['import:7:1', 'import:7:1'],
])('an event id that a client made, %j, stands in a header as %s and is signed so', (id, shown) => {
  const headers = signer({ standardWebhooks: true, signingKey: 'key' }).headers(id, 'body', AT_MS);
  const signature = createHmac('sha256', 'key').update(`${shown}.1692633432.body`).digest('base64');
  expect(headers).toMatchObject({
    'webhook-id': shown,
    'webhook-signature': `v1,${signature}`,
  });
});

test('the headers of Standard Webhooks carry a signature of each key, of a whsec_ key by its bytes', () => {
  const bytes = Buffer.from('the bytes of a secret');
  const headers = signer({
    standardWebhooks: true,
    nextSigningKey: `whsec_${bytes.toString('base64')}`,
    nextSignsFromMs: AT_MS + 1,
  }).headers('event-1', 'body', AT_MS);
  const expected = (key: string | Buffer) =>
    createHmac('sha256', key).update('event-1.1692633432.body').digest('base64');
  expect(headers).toMatchObject({
    'webhook-id': 'event-1',
    'webhook-timestamp': '1692633432',
    'webhook-signature': `v1,${expected('old')} v1,${expected(bytes)}`,
  });
});

test.each([
  ['sluice', false, ['x-svc-signature']],
  ['sluice', true, ['webhook-signature', 'x-svc-signature']],
  ['standard_webhooks', false, ['webhook-signature']],
  ['none', true, []],
] as const)(
  'by the scheme %s, Standard Webhooks beside it %s, the signatures are %s',
  (signing, standardWebhooks, names) => {
    const rotated = { signingKey: 'old', nextSigningKey: 'new', nextSignsFromMs: AT_MS + 1 };
    const headers = signer({ ...rotated, signing, standardWebhooks }).headers('id', '{}', AT_MS);
    const plain = signer({ ...rotated, standardWebhooks: true }).headers('id', '{}', AT_MS);
    expect(
      Object.keys(headers)
        .filter((name) => /^(?:x-svc|webhook)-signature$/.test(name))
        .toSorted(),
    ).toEqual(names);
    expect('x-svc-signature-next' in headers).toBe(signing === 'sluice');
    for (const name of names) expect(headers[name]).toBe(plain[name]);
  },
);
