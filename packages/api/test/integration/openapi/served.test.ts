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
  // Equal strong tags promise equal bytes (RFC 9110 §8.8.3).
  const packedTag = String(packed.headers['etag']);
  expect(packedTag).not.toBe(etag);
  for (const [tag, coding, status] of [
    [etag, {}, 304],
    [packedTag, headers, 304],
    [etag, headers, 200],
    [packedTag, {}, 200],
  ] as const) {
    const again = await api.app.inject({ url, headers: { ...coding, 'if-none-match': tag } });
    expect([tag, again.statusCode, again.headers['etag']]).toEqual([
      tag,
      status,
      coding === headers ? packedTag : etag,
    ]);
    if (status === 304) expect(again.body).toBe('');
  }
  // As a proxy that compresses has changed it, and with the tag of an earlier version.
  for (const list of [`W/${etag}`, `"other", W/${etag}`, '*']) {
    const known = await api.app.inject({ url, headers: { 'if-none-match': list } });
    expect([list, known.statusCode]).toEqual([list, 304]);
  }
  const other = await api.app.inject({ url, headers: { 'if-none-match': '"other"' } });
  expect(other.statusCode).toBe(200);
});
