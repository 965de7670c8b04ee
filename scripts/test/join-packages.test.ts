/** Joined packages export the same names, and share each module's copy. They may be missing. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';

interface Joining {
  readonly JOINED_PACKAGES: readonly string[];
  readonly joinedFolder: () => string;
  readonly joinedFileOf: (specifier: string) => string;
}

const fileOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const joining = (await import(fileOf('scripts/join-packages.mjs'))) as Joining;
const { JOINED_PACKAGES, joinedFolder, joinedFileOf } = joining;
const run = promisify(execFile);
const joinPackages = (...folder: string[]) =>
  run(process.execPath, [fileOf('scripts/join-packages.mjs'), ...folder], { env: {} });
let cache = '';

beforeAll(async () => {
  // Below the checkout's packages: a joined file finds its other imports from there.
  cache = await mkdtemp(fileOf('node_modules/.joined-under-test-'));
  await joinPackages(join(cache, 'joined'));
  await joinPackages();
}, 300_000);
afterAll(() => rm(cache, { recursive: true, force: true }));

/** Runs TypeScript like a module of ours. @returns its output. */
async function runOwn(text: string, flags: readonly string[], args: readonly string[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-joined-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'main.ts');
  await writeFile(file, text);
  const words = ['--disable-warning=ExperimentalWarning', ...flags, file, ...args];
  return (await run(process.execPath, words, { env: {} })).stdout;
}

test.for(JOINED_PACKAGES)('the joined %s has the exports of its package', async (specifier) => {
  const text = `
    const namesOf = async (url: string) =>
      Object.keys(await import(url)).filter((name) => /^\\w+$/.test(name)).sort();
    const [joined, own] = [await namesOf(process.argv[2]!), await namesOf(process.argv[3]!)];
    console.log(JSON.stringify({ joined, own }));`;
  const joinedUrl = pathToFileURL(join(cache, 'joined', joinedFileOf(specifier))).href;
  const printed = await runOwn(text, [], [joinedUrl, import.meta.resolve(specifier)]);
  const { joined, own } = JSON.parse(printed) as { joined: string[]; own: string[] };
  expect(own.length).toBeGreaterThan(0);
  expect(joined).toEqual(own);
});

test('a module that two joined packages share is one copy', async () => {
  const text = `
    import { Queue } from 'bullmq';
    import { Cluster, Redis } from 'ioredis';
    import { serializerCompiler } from 'fastify-type-provider-zod';
    import { z } from 'zod';
    // BullMQ makes a client of its own.
    const queue = new Queue('test', { connection: { host: '127.0.0.1', port: 1, lazyConnect: true } });
    queue.on('error', () => {});
    const { opts } = queue as unknown as { opts: { connection: unknown } };
    const connection = new Redis({ lazyConnect: true });
    const write = serializerCompiler({ schema: z.object({ a: z.number() }), method: 'GET', url: '/' } as never);
    console.log(write({ a: 1 }), connection instanceof Redis, typeof Cluster, typeof opts);
    process.exit(0);`;
  const flags = [`--import=${fileOf('scripts/quick-start.mjs')}`];
  expect(await runOwn(text, flags)).toBe('{"a":1} true function object\n');
});

test('a second joining leaves the files of the first, and no unfinished ones', async () => {
  const before = await readdir(join(cache, 'joined'));
  await joinPackages(join(cache, 'joined'));
  expect(await readdir(join(cache, 'joined'))).toEqual(before);
  expect(await readdir(cache)).toEqual(['joined']);
  expect(joinedFolder()).toMatch(/node_modules\/\.cache\/joined\/[0-9a-f]{32}$/);
});

test('folders of the oldest joinings are removed, and never one that another process still writes', async () => {
  const kept = join(cache, 'kept');
  const named = (digit: number): string => join(kept, String(digit).repeat(32));
  const unfinished = `${named(9)}-0b0e7a5c-8d0c-4c0f-9d0e-2f6f0c3b1a11`;
  const folders = [unfinished, named(1), named(2), named(3)];
  for (const [age, folder] of folders.entries()) {
    await mkdir(folder, { recursive: true });
    await utimes(folder, age + 1, age + 1);
  }
  await joinPackages(named(4));
  const expected = [named(2), named(3), named(4), unfinished];
  const found = (await readdir(kept)).map((name) => join(kept, name));
  expect(found.toSorted()).toEqual(expected.toSorted());
  await rm(kept, { recursive: true });
});

test('without a lockfile modules are loaded as they are', async () => {
  const root = await mkdtemp(join(tmpdir(), 'sluice-test-unlocked-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'scripts'));
  for (const name of ['resolve-imports.mjs', 'join-packages.mjs'])
    await copyFile(fileOf(`scripts/${name}`), join(root, 'scripts', name));
  const flags = [`--import=${pathToFileURL(join(root, 'scripts/resolve-imports.mjs')).href}`];
  expect(await runOwn("console.log('runs');", flags)).toBe('runs\n');
});
