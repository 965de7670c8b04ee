/** The description and the reference are sent compressed. A client that has them gets 304. */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

test.each(['/openapi.json', '/docs'])('%s', async (url) => {
  const plain = await api.app.inject({ url });
  expect(plain.headers['content-encoding']).toBeUndefined();
  const headers = { 'accept-encoding': 'gzip, deflate' };
  const packed = await api.app.inject({ url, headers });
  expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 5);
  const etag = String(plain.headers['etag']);
  expect(packed.headers['etag']).toBe(etag);
  const again = await api.app.inject({ url, headers: { 'if-none-match': etag } });
  expect([again.statusCode, again.body]).toEqual([304, '']);
  // As a proxy that compresses has changed it, and with the tag of an earlier version.
  for (const list of [`W/${etag}`, `"other", W/${etag}`, '*']) {
    const known = await api.app.inject({ url, headers: { 'if-none-match': list } });
    expect([list, known.statusCode]).toEqual([list, 304]);
  }
  const other = await api.app.inject({ url, headers: { 'if-none-match': '"other"' } });
  expect(other.statusCode).toBe(200);
});
