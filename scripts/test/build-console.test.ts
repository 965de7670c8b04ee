/** The build of the console: complete or not there at all, once for the same sources, and never half of it. */
import { mkdtemp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildConsole } from '../build-console.mjs';

let root: string;
let source: string;
let cache: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sluice-build-'));
  [source, cache] = [join(root, 'src'), join(root, 'cache')];
  await mkdir(join(source, 'styles'), { recursive: true });
  await writeFile(join(source, 'main.tsx'), 'document.title = "one";');
  for (const name of ['console', 'docs'])
    await writeFile(join(source, `styles/${name}.css`), 'body { margin: 0 }');
  await writeFile(join(source, 'icon.svg'), '<svg/>');
  await mkdir(join(source, 'json'));
  await writeFile(join(source, 'json/json-worker.ts'), 'postMessage("read");');
  await writeFile(join(source, 'portal.tsx'), 'document.title = "portal";');
  for (const page of ['index.html', 'portal.html'])
    await writeFile(join(source, page), '<link href="%STYLE%"><script src="%SCRIPT%"></script>');
});
afterAll(() => rm(root, { recursive: true }));

test('a page names its assets by their content, each also compressed', async () => {
  const folder = await buildConsole(source, cache);
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  const [, style = '', script = ''] = /href="(.+\.css)".*src="(.+\.js)"/.exec(page) ?? [];
  for (const path of [script, style]) {
    const content = await readFile(join(folder, path), 'utf8');
    const gzip = gunzipSync(await readFile(join(folder, `${path}.gz`)));
    const brotli = brotliDecompressSync(await readFile(join(folder, `${path}.br`)));
    expect([gzip.toString(), brotli.toString()]).toEqual([content, content]);
    expect(path).toMatch(/^\/assets\/\w+-[A-Z0-9]{8}\.\w+$/);
  }
});

test('each page has its own script, and the documentation is beside them', async () => {
  const folder = await buildConsole(source, cache);
  const scripts = await Promise.all(
    ['index.html', 'portal.html'].map(async (page) => {
      const [, script = ''] =
        /src="(.+\.js)"/.exec(await readFile(join(folder, page), 'utf8')) ?? [];
      return readFile(join(folder, script), 'utf8');
    }),
  );
  expect(scripts.map((script) => /document\.title="(\w+)"/.exec(script)?.[1])).toEqual([
    'one',
    'portal',
  ]);
  const runbook = join(folder, 'docs/operations/runbooks/redis-lost.html');
  expect(await readFile(runbook, 'utf8')).toMatch(
    /<link rel="stylesheet" href="\/assets\/docs-[A-Z0-9]{8}\.css">/,
  );
});

test('the same sources are built once, other ones beside them, also by several at a time', async () => {
  const first = await buildConsole(source, cache);
  await writeFile(join(first, 'mark'), '');
  expect(await buildConsole(source, cache)).toBe(first);
  expect(await readdir(first)).toContain('mark');
  await writeFile(join(source, 'main.tsx'), 'document.title = "two";');
  const folders = await Promise.all([1, 2, 3].map(() => buildConsole(source, cache)));
  expect(new Set(folders).size).toBe(1);
  expect(folders[0]).not.toBe(first);
  expect((await readdir(cache)).toSorted()).toEqual(
    [first, ...new Set(folders)].map((folder) => folder.slice(cache.length + 1)).toSorted(),
  );
});

test('sources that cannot be built leave the cache as it is, and the next build is whole', async () => {
  const before = (await readdir(cache)).toSorted();
  await writeFile(join(source, 'main.tsx'), 'const = ;');
  await expect(buildConsole(source, cache)).rejects.toThrow(/main\.tsx/);
  expect((await readdir(cache)).toSorted()).toEqual(before);
  await writeFile(join(source, 'main.tsx'), 'document.title = "three";');
  expect(await readdir(await buildConsole(source, cache))).toContain('index.html');
});

test('of earlier builds the latest five are kept', async () => {
  for (let count = 0; count < 7; count++) {
    await writeFile(join(source, 'main.tsx'), `document.title = "${count}";`);
    await buildConsole(source, cache);
  }
  expect(await readdir(cache)).toHaveLength(5);
});

test('a build leaves no process behind', async () => {
  await writeFile(join(source, 'main.tsx'), 'document.title = "last";');
  await buildConsole(source, cache);
  const children = () =>
    readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').catch(() => '');
  await expect
    .poll(
      async () => {
        const pids = (await children()).split(' ').filter((pid) => pid !== '');
        const commands = await Promise.all(
          pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
        );
        return commands.filter((command) => command.includes('esbuild'));
      },
      { timeout: 30_000 },
    )
    .toEqual([]);
});

// One script brings all screens, so a screen has no script of its own.
test('the portal loads 90 KB of script at most, and a screen 40 KB beside the first one', async () => {
  const assets = join(await buildConsole(), 'assets');
  const sizes = await Promise.all(
    (await readdir(assets))
      .filter((name) => name.endsWith('.js'))
      .map(async (name) => ({ name, size: (await readFile(join(assets, `${name}.gz`))).length })),
  );
  const sizeOf = (name: string): number =>
    sizes.find((each) => each.name.startsWith(`${name}-`))?.size ?? Infinity;
  expect(sizeOf('main')).toBeLessThanOrEqual(150_000);
  expect(sizeOf('portal')).toBeLessThanOrEqual(90_000);
  const ofScreens = sizes.filter(({ name }) => !/^(?:main|portal)-/.test(name));
  expect(ofScreens.filter(({ size }) => size > 40_000)).toEqual([]);
});
