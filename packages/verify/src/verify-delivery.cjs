/**
 * Verifies that a request is a delivery of a webhook of yours: signed with its secret, just now.
 *
 * This file is JavaScript and imports only Node's own crypto, so it can be copied unchanged into any receiver. It is
 * CommonJS, which `import` and `require` load on every Node. The signature is the lowercase hex HMAC-SHA256 of
 * `v0:<x-svc-timestamp>:<raw body>`, with the characters of the secret as the key; while a secret is
 * rotated `x-svc-signature-next` has the new one's, and either header will do. `x-cio-timestamp` and `x-cio-signature`
 * repeat the first two under the names of Customer.io. They are read if a header under our name is absent.
 *
 * Every signature is compared with the signature of every secret, in constant time, also after one fits. So the time
 * of a comparison does not reveal the secrets.
 */
const { createHmac, timingSafeEqual } = require('node:crypto');

const TOLERANCE_SECONDS = 300;
/** The first of each row that is there. */
const TIMESTAMP_HEADERS = ['x-svc-timestamp', 'x-cio-timestamp'];
const SIGNATURE_HEADERS = [['x-svc-signature', 'x-cio-signature'], ['x-svc-signature-next']];
const TIMESTAMP = /^\d{1,12}$/;
const SIGNATURE = /^[0-9a-f]{64}$/;

/** @type {typeof import('../verify-delivery.d.cts').verifyDelivery} */
function verifyDelivery(headers, body, secrets, options = {}) {
  return whyRefused(headers, body, secrets, options) === undefined;
}

/** @type {typeof import('../verify-delivery.d.cts').whyRefused} */
function whyRefused(headers, body, secrets, options = {}) {
  const { toleranceSeconds = TOLERANCE_SECONDS, nowMs = Date.now() } = options ?? {};
  for (const [name, value] of Object.entries({ toleranceSeconds, nowMs })) {
    // With NaN no request would ever be too old.
    if (!Number.isFinite(value)) throw new TypeError(`${name} must be a finite number`);
  }
  const keys = Array.isArray(secrets) ? secrets : [secrets];
  if (keys.some((key) => key === undefined || key === null)) {
    throw new TypeError('the secret of the webhook is not set: is it in your environment?');
  }
  if (keys.length === 0 || keys.some((key) => typeof key !== 'string' || key === '')) {
    throw new TypeError(
      'a delivery is verified with at least one secret, and an empty secret is refused',
    );
  }
  if (headers === undefined || headers === null) {
    throw new TypeError('the headers of the request are missing');
  }
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError(
      'the body must be the text or the bytes of the request, as they came: read it before any parser does',
    );
  }

  const timestamp = firstOf(headers, TIMESTAMP_HEADERS);
  const signatures = SIGNATURE_HEADERS.map((names) => firstOf(headers, names))
    .filter((value) => value !== undefined && SIGNATURE.test(value))
    .map((value) => Buffer.from(String(value), 'hex'));
  if (timestamp === undefined || !TIMESTAMP.test(timestamp) || signatures.length === 0) {
    return 'malformed_headers';
  }

  const ageSeconds = nowMs / 1000 - Number(timestamp);
  if (ageSeconds > toleranceSeconds) return 'too_old';
  if (ageSeconds < -toleranceSeconds) return 'too_new';

  let matches = 0;
  for (const key of keys) {
    const expected = createHmac('sha256', key).update(`v0:${timestamp}:`).update(body).digest();
    for (const signature of signatures) matches += Number(timingSafeEqual(expected, signature));
  }
  return matches > 0 ? undefined : 'wrong_signature';
}

/**
 * The only value of the first present header; `undefined` if all are absent, or if the request has that header twice.
 *
 * @param {import('../verify-delivery.d.cts').DeliveryHeaders} headers
 * @param {readonly string[]} names in lower case
 * @returns {string | undefined}
 */
function firstOf(headers, names) {
  for (const name of names) {
    const values = valuesOf(headers, name);
    if (values.length > 0)
      return values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined;
  }
  return undefined;
}

/**
 * @param {import('../verify-delivery.d.cts').DeliveryHeaders} headers
 * @param {string} name in lower case
 * @returns {unknown[]}
 */
function valuesOf(headers, name) {
  if (typeof headers.get === 'function') {
    const value = headers.get(name);
    return value === null || value === undefined ? [] : [value];
  }
  return Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
}

exports.verifyDelivery = verifyDelivery;
exports.whyRefused = whyRefused;
