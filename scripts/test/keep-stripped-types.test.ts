/**
 * A start removes the types of each module once: its kept modules are used, are never out of date, and may be missing.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const HOOK = fileURLToPath(new URL('../keep-stripped-types.mjs', import.meta.url));
const run = promisify(execFile);

async function makeCheckout() {
  const root = await mkdtemp(join(tmpdir(), 'sluice-test-stripped-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const hook = join(root, 'scripts/keep-stripped-types.mjs');
  await mkdir(join(root, 'scripts'));
  await copyFile(HOOK, hook);
  const main = join(root, 'main.ts');
  await writeFile(join(root, 'word.ts'), `export const word: string = 'first';\n`);
  await writeFile(main, `import { word } from './word.ts';\nconsole.log(word as string);\n`);
  const cache = join(root, 'node_modules/.cache/stripped');
  return {
    root,
    write: (word: string) =>
      writeFile(join(root, 'word.ts'), `export const word: string = '${word}';\n`),
    entries: async () => (await readdir(cache)).map((name) => join(cache, name)),
    start: async () =>
      (
        await run(process.execPath, [
          '--disable-warning=ExperimentalWarning',
          `--import=${hook}`,
          main,
        ])
      ).stdout,
  };
}

test('the second start uses the files that the first one kept, and reads a changed module anew', async () => {
  const { start, entries, write } = await makeCheckout();
  expect(await start()).toBe('first\n');
  const kept = await entries();
  expect(kept).toHaveLength(2);
  for (const file of kept) {
    const text = await readFile(file, 'utf8');
    expect(text).not.toContain(': string');
    await writeFile(file, text.replace('first', 'kept'));
  }
  expect(await start()).toBe('kept\n');
  await write('second');
  expect(await start()).toBe('second\n');
});

test('the program starts all the same if it can keep no file', async () => {
  const { root, start } = await makeCheckout();
  await writeFile(join(root, 'node_modules'), 'not a folder');
  expect(await start()).toBe('first\n');
});
