/** The pages of the documentation: their policy, their search, and their addresses if they were not built. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const BUILD = fileURLToPath(new URL('../../../../../scripts/build-docs.mjs', import.meta.url));

let parent: string;
let directory: string;
let api: ApiUnderTest;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'sluice-docs-'));
  directory = join(parent, 'console');
  await writeFile(join(parent, 'secret.html'), 'not for the web');
  api = await startApi({ consoleDirectory: directory });
});
afterAll(async () => {
  await api.close();
  await rm(parent, { recursive: true });
});

const get = (url: string, headers = {}) => api.app.inject({ url, headers });

/** Two pages, rendered in the same way as the pages of the checkout. */
async function build(): Promise<void> {
  const source = join(parent, 'source');
  await mkdir(join(source, 'operations'), { recursive: true });
  await writeFile(
    join(source, 'operations/keys.md'),
    '# Keys\n\nKeys sign and encrypt.\n\n## Rotate a signing key\n\nMake the next one, `$&` & <b>then</b> promote it.\n\n[Start](../README.md#first) [code](../../scripts/verify.ts) [bad](javascript:alert(1))\n',
  );
  await writeFile(join(source, 'README.md'), '# Start\n\n## First\n\nNothing of keys.\n');
  const { renderDocs } = (await import(pathToFileURL(BUILD).href)) as {
    renderDocs: (docs: string, style: string) => Record<string, string>;
  };
  for (const [path, content] of Object.entries(renderDocs(source, '/assets/docs-ABCD1234.css'))) {
    await mkdir(join(directory, 'docs', path, '..'), { recursive: true });
    await writeFile(join(directory, 'docs', path), content);
  }
}

test('pages that were not built, or are damaged, answer 503 and the API goes on', async () => {
  for (const url of ['/docs/pages', '/docs/pages/operations/keys']) {
    const answer = await get(url);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([
      503,
      'text/html; charset=utf-8',
    ]);
    expect(answer.body).toContain('was not built');
  }
  await mkdir(join(directory, 'docs'), { recursive: true });
  await writeFile(join(directory, 'docs/list.html'), '%QUERY%%RESULTS%');
  await writeFile(join(directory, 'docs/index.json'), '{ "sections": [');
  expect((await get('/docs/pages?q=keys')).statusCode).toBe(503);
  expect((await api.call('GET', '/v1/workspaces')).statusCode).toBe(200);
  await build();
  expect((await get('/docs/pages')).statusCode).toBe(200);
});

test('a page runs no script, loads only files of this origin, and shows markup as text', async () => {
  await build();
  const { headers, body } = await get('/docs/pages/operations/keys');
  expect(String(headers['content-security-policy']).split('; ')).toEqual([
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]);
  expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'referrer-policy': 'no-referrer' });
  expect(body).toContain('<h2 id="rotate-a-signing-key">Rotate a signing key</h2>');
  expect(body).toContain('<code>$&amp;</code> &amp; &lt;b&gt;then&lt;/b&gt;');
  expect(body).toContain('<a href="/docs/pages/start#first">Start</a> code bad');
  expect(body).not.toMatch(/<script|style=|javascript:|<b>/);
});

test('a page that the browser has is not sent again', async () => {
  const { headers } = await get('/docs/pages/start');
  const again = await get('/docs/pages/start', { 'if-none-match': String(headers['etag']) });
  expect([again.statusCode, again.body]).toEqual([304, '']);
});

test('a search finds sections by the stems of its words, and shows its own words as text', async () => {
  await build();
  const found = await get('/docs/pages?q=how+do+I+rotate+signing+keys%3F');
  // The section with all three words comes first. The section "First" has one of them, and is left out.
  expect(
    [...found.body.matchAll(/<li><a href="([^"]+)">/g)].map(([, to]) => to).slice(0, 2),
  ).toEqual([
    '/docs/pages/operations/keys#rotate-a-signing-key',
    '/docs/pages/operations/keys#keys',
  ]);
  expect(found.body).toContain('2 found');
  const marked = await get(`/docs/pages?q=${encodeURIComponent('"><script>$&%RESULTS%')}`);
  expect(marked.body).toContain('value="&quot;&gt;&lt;script&gt;$&amp;%RESULTS%"');
  expect(marked.body).not.toContain('<script>');
  expect((await get('/docs/pages?q=zzz')).body).toContain('No page has');
  expect((await get('/docs/pages?q=+')).body).toContain('<h1>Documentation</h1>');
  expect((await get(`/docs/pages?q=${'rotate '.repeat(1_000)}`)).statusCode).toBe(200);
});

test.each([
  '/docs/pages/..%2F..%2Fsecret',
  '/docs/pages/%2e%2e/%2e%2e/secret',
  '/docs/pages/list',
  '/docs/pages/index.json',
  '/docs/pages/operations/keys.html',
  '/docs/pages/constructor',
])('no path leads to another file: %s', async (path) => {
  const answer = await get(path);
  expect([400, 404]).toContain(answer.statusCode);
  expect(answer.body).not.toContain('not for the web');
});
