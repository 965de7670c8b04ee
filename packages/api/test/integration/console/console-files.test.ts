/** The files of the console: their paths, their policy, and the answers if they are missing. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PART_PATHS, SCREEN_PATHS } from '../../../src/console/console-files.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const PAGE = '<!doctype html><title>Sluice</title>';
const SCRIPT = 'document.title = "Sluice";'.repeat(20);
const SCRIPT_PATH = '/assets/main-ABCD1234.js';

let directory: string;
let api: ApiUnderTest;
beforeAll(async () => {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-console-'));
  await writeFile(join(parent, 'secret.js'), 'not for the web');
  directory = join(parent, 'built');
  api = await startApi({ consoleDirectory: directory });
});
afterAll(async () => {
  await api.close();
  await rm(join(directory, '..'), { recursive: true });
});

const get = (url: string, headers = {}) => api.app.inject({ url, headers });

test('a missing console build gets 503 while the API goes on, and a later build is served', async () => {
  const before = await get('/webhooks/1');
  expect(before.statusCode).toBe(503);
  expect(before.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(before.body).toContain('was not built');
  expect((await api.call('GET', '/v1/workspaces')).statusCode).toBe(200);

  await mkdir(join(directory, 'assets'), { recursive: true });
  await writeFile(join(directory, 'assets/main-ABCD1234.js'), SCRIPT);
  await writeFile(join(directory, 'assets/main-ABCD1234.js.gz'), gzipSync(SCRIPT));
  await writeFile(join(directory, 'assets/main-ABCD1234.js.br'), brotliCompressSync(SCRIPT));
  await writeFile(join(directory, 'assets/notes.txt'), 'no part of it');
  await writeFile(join(directory, 'index.html'), PAGE);
  for (const path of SCREEN_PATHS) {
    const answer = await get(path.replaceAll(/:\w+/g, 'a%2Fb'));
    expect({ path, status: answer.statusCode, body: answer.body }).toEqual({
      path,
      status: 200,
      body: PAGE,
    });
  }
});

test('each path of the design has a screen, or leads to the screen that shows the part', () => {
  const design = [
    ...['/', '/start', '/live', '/events/:id', '/issues', '/issues/:code/:source/:field'],
    ...['/webhooks', '/webhooks/:id', '/webhooks/:id/deliveries', '/webhooks/:id/replays'],
    ...['/webhooks/:id/deliveries/:seq', '/people', '/people/:id', '/objects'],
    ...['/objects/:type/:id', '/imports', '/imports/:id', '/keys', '/keys/:id', '/users'],
    ...['/audit', '/audit/:id', '/billing', '/billing/credits', '/billing/purchases/:run'],
    ...['/billing/usage', '/fleet', '/settings', '/settings/sessions', '/docs/:tag/:operation'],
  ];
  const unnamed = (path: string): string => path.replaceAll(/:\w+/g, ':');
  const served = new Set([...SCREEN_PATHS, ...Object.keys(PART_PATHS)].map(unnamed));
  expect(design.filter((path) => !served.has(unnamed(path)))).toEqual([]);
});

test.each([
  [
    '/issues/invalid/pipelines.track/a%2Fb?tz=local',
    '/issues?tz=local&code=invalid&source=pipelines.track&field=a%2Fb',
  ],
  ['/webhooks/2/deliveries?state=pending', '/webhooks/2?state=pending'],
  ['/webhooks/2/deliveries/1?attempt=4', '/webhooks/2?attempt=4&delivery=1'],
  ['/webhooks/%2Fevil.example/replays', '/webhooks/%2Fevil.example'],
  ['/settings/sessions', '/settings'],
])('%s leads to %s', async (path, address) => {
  const answer = await get(path);
  expect({ status: answer.statusCode, address: answer.headers.location }).toEqual({
    status: 302,
    address,
  });
});

test('the page runs only our own files, cannot be framed, and is revalidated each time', async () => {
  const { headers } = await get('/');
  expect(String(headers['content-security-policy']).split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types sluice-worker',
  ]);
  expect(headers).toMatchObject({
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  });
});

test.each([
  ['br', 'br'],
  ['gzip, deflate, br;q=0.5', 'br'],
  ['gzip', 'gzip'],
  ['br;q=0, gzip;q=0.000', undefined],
  ['brotli', undefined],
  ['', undefined],
])('an asset is sent as the browser takes it: %s', async (accepted, coding) => {
  const answer = await get(SCRIPT_PATH, { 'accept-encoding': accepted });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['content-encoding']).toBe(coding);
  expect(answer.headers['vary']).toBe('accept-encoding');
  if (coding === 'br') expect(brotliDecompressSync(answer.rawPayload).toString()).toBe(SCRIPT);
  if (coding === undefined) expect(answer.body).toBe(SCRIPT);
});

test('an asset whose name is of its content is kept for good, and a known one is not sent again', async () => {
  const { headers } = await get(SCRIPT_PATH);
  expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
  const again = await get(SCRIPT_PATH, { 'if-none-match': String(headers['etag']) });
  expect([again.statusCode, again.body]).toEqual([304, '']);
});

test.each([
  '/assets/..%2F..%2Fsecret.js',
  '/assets/..%2findex.html',
  '/assets/%2e%2e%2findex.html',
  '/assets/..%5c..%5csecret.js',
  '/assets/notes.txt',
  '/assets/main-ABCD1234.js.br',
  '/assets/%00',
  '/assets/nothing.js',
])('no path leads to another file: %s', async (path) => {
  const answer = await get(path);
  expect([400, 404]).toContain(answer.statusCode);
  expect(answer.body).not.toContain('not for the web');
});

test('without the setting the console paths are 404', async () => {
  const other = await startApi();
  for (const url of ['/', '/live', SCRIPT_PATH])
    expect((await other.app.inject({ url })).statusCode).toBe(404);
  await other.close();
});
