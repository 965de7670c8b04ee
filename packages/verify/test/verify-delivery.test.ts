import { createHmac } from 'node:crypto';
import { verifyDelivery, whyRefused } from '@sluice/verify';
import { describe, expect, test } from 'vitest';

// The published vector of this signature.
const SECRET = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';
const BODY = '{"key": "value"}';
const HEADERS = {
  'x-svc-timestamp': '1692633432',
  'x-svc-signature': 'd7c655389bb364d3e8bdbb6ec18a7f1b6cf91f39bba647554ada78aa61de37b9',
};
const SENT_AT_MS = 1_692_633_432_000;
const now = { nowMs: SENT_AT_MS };

const signed = (secret: string, timestamp = '1692633432', body = BODY): string =>
  createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');

test('the published vector passes, as text and as bytes', () => {
  expect(verifyDelivery(HEADERS, BODY, SECRET, now)).toBe(true);
  expect(verifyDelivery(HEADERS, Buffer.from(BODY), SECRET, now)).toBe(true);
  expect(verifyDelivery(HEADERS, new TextEncoder().encode(BODY), [SECRET], now)).toBe(true);
});

test('headers are found as Node, fetch and anybody else hand them over', () => {
  expect(verifyDelivery(new Headers(HEADERS), BODY, SECRET, now)).toBe(true);
  expect(verifyDelivery(new Map(Object.entries(HEADERS)) as never, BODY, SECRET, now)).toBe(true);
  const upper = Object.fromEntries(
    Object.entries(HEADERS).map(([name, value]) => [name.toUpperCase(), [value]]),
  );
  expect(verifyDelivery(upper, BODY, SECRET, now)).toBe(true);
});

describe('refused', () => {
  interface Change {
    readonly body?: string;
    readonly secret?: string;
    readonly headers?: Record<string, string>;
  }
  test.each<[string, Change]>([
    ['another body', { body: `${BODY} ` }],
    ['another secret', { secret: 'another' }],
    ['the secret decoded from hex', { secret: Buffer.from(SECRET, 'hex').toString('latin1') }],
    ['another time', { headers: { ...HEADERS, 'x-svc-timestamp': '1692633433' } }],
    ['another signature', { headers: { ...HEADERS, 'x-svc-signature': '0'.repeat(64) } }],
  ])('%s', (_, { body = BODY, secret = SECRET, headers = HEADERS }) => {
    expect(whyRefused(headers, body, secret, now)).toBe('wrong_signature');
    expect(verifyDelivery(headers, body, secret, now)).toBe(false);
  });

  test.each([
    ['nothing', {}],
    ['no time', { 'x-svc-signature': HEADERS['x-svc-signature'] }],
    ['no signature', { 'x-svc-timestamp': '1692633432' }],
    ['a time that is no number', { ...HEADERS, 'x-svc-timestamp': '1692633432.0' }],
    ['a time with blanks', { ...HEADERS, 'x-svc-timestamp': ' 1692633432' }],
    ['a signature that is too short', { ...HEADERS, 'x-svc-signature': 'd7c6' }],
    [
      'a signature in upper case',
      { ...HEADERS, 'x-svc-signature': HEADERS['x-svc-signature'].toUpperCase() },
    ],
    [
      'two signatures in one header',
      { ...HEADERS, 'x-svc-signature': [HEADERS['x-svc-signature'], 'a'] },
    ],
    ['the same header twice', { ...HEADERS, 'X-Svc-Timestamp': '1692633432' }],
  ])('headers with %s', (_, headers) => {
    expect(whyRefused(headers, BODY, SECRET, now)).toBe('malformed_headers');
  });

  test('a delivery that is older or newer than the tolerance, to the second', () => {
    const at = (seconds: number, toleranceSeconds?: number) =>
      whyRefused(HEADERS, BODY, SECRET, {
        nowMs: SENT_AT_MS + seconds * 1000,
        ...(toleranceSeconds !== undefined && { toleranceSeconds }),
      });
    expect([at(300), at(-300), at(60, 60)]).toEqual([undefined, undefined, undefined]);
    expect([at(301), at(61, 60)]).toEqual(['too_old', 'too_old']);
    expect(at(-301)).toBe('too_new');
    // By the clock of today it is years old.
    expect(whyRefused(HEADERS, BODY, SECRET)).toBe('too_old');
  });
});

test('while a secret is rotated each of the two passes, alone and together, and no third', () => {
  const headers = {
    'x-svc-timestamp': '1692633432',
    'x-svc-signature': signed('old'),
    'x-svc-signature-next': signed('new'),
  };
  for (const secrets of ['old', 'new', ['old', 'new'], ['new', 'old'], ['third', 'new']]) {
    expect(verifyDelivery(headers, BODY, secrets, now)).toBe(true);
  }
  expect(verifyDelivery(headers, BODY, ['third'], now)).toBe(false);
});

// Security: HMAC with an empty key is a signature that anybody can make.
test.each([[[]], [''], [['', SECRET]], [[undefined as unknown as string]]])(
  'without a secret (%j) it throws instead of answering',
  (secrets) => {
    const headers = { 'x-svc-timestamp': '1692633432', 'x-svc-signature': 'a'.repeat(64) };
    expect(() => verifyDelivery(headers, BODY, secrets, now)).toThrow(TypeError);
  },
);

describe('under the names of Customer.io', () => {
  const headers = { 'x-cio-timestamp': '1692633432', 'x-cio-signature': signed(SECRET) };

  test('the same signature passes, alone and beside ours', () => {
    expect(verifyDelivery(headers, BODY, SECRET, now)).toBe(true);
    expect(verifyDelivery(new Headers(headers), BODY, SECRET, now)).toBe(true);
    expect(verifyDelivery({ ...HEADERS, ...headers }, BODY, SECRET, now)).toBe(true);
    expect(verifyDelivery(headers, BODY, 'another', now)).toBe(false);
  });

  // Security: a second name must not be a way round a header of ours that is not right.
  test('it does not stand in for one of ours that is wrong or there twice', () => {
    const wrong = { ...headers, 'x-svc-signature': 'f'.repeat(64) };
    expect(whyRefused(wrong, BODY, SECRET, now)).toBe('wrong_signature');
    const old = { ...headers, 'x-svc-timestamp': '1' };
    expect(whyRefused(old, BODY, SECRET, now)).toBe('too_old');
    const twice = { ...headers, 'x-svc-signature': ['a', 'b'] };
    expect(whyRefused(twice, BODY, SECRET, now)).toBe('malformed_headers');
  });
});

test.each([undefined, null])(
  'a secret that is not set (%j) throws an error with a sentence',
  (secret) => {
    expect(() => verifyDelivery(HEADERS, BODY, secret as unknown as string, now)).toThrow(
      'the secret of the webhook is not set',
    );
  },
);

// Security: with NaN no request would ever be too old.
test.each([
  { toleranceSeconds: NaN },
  { toleranceSeconds: Infinity },
  { toleranceSeconds: '300' as unknown as number },
  { nowMs: NaN },
  { nowMs: new Date('nonsense').getTime() },
  { toleranceSeconds: null as unknown as number },
])('an option that is no finite number is refused: %j', (options) => {
  expect(() => whyRefused(HEADERS, BODY, SECRET, options)).toThrow('must be a finite number');
});

describe('a mistake of the receiver throws a sentence of ours', () => {
  const ofHeaders = (headers: unknown) => () => verifyDelivery(headers as never, BODY, SECRET, now);
  const ofBody = (body: unknown) => () => verifyDelivery(HEADERS, body as never, SECRET, now);
  const ofSecret = (secret: unknown) => () => verifyDelivery(HEADERS, BODY, secret as never, now);

  test.each([undefined, null, [undefined], [SECRET, null]])(
    'the secret %j is not set',
    (secret) => {
      expect(ofSecret(secret)).toThrow(/^the secret of the webhook is not set/);
    },
  );

  test.each([42, [42], {}, true])('the secret %j is no text', (secret) => {
    expect(ofSecret(secret)).toThrow(/^a delivery is verified with at least one secret/);
  });

  test.each([JSON.parse(BODY), undefined, null, 42])('the body %j was parsed', (body) => {
    expect(ofBody(body)).toThrow(/^the body must be the text or the bytes of the request/);
  });

  test.each([undefined, null])('the headers are %j', (headers) => {
    expect(ofHeaders(headers)).toThrow('the headers of the request are missing');
  });

  test('null in the place of the options means the default options', () => {
    expect(verifyDelivery(HEADERS, BODY, SECRET, null as never)).toBe(false);
  });
});
