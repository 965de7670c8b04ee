/** The page of one event's walk, checked against its files. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FIRST_FILE = 'intake/src/server.ts';

/** The files of each row's second column; a name without a folder is beside the one before it. */
function filesOfWalk(): string[] {
  return readFileSync(join(ROOT, 'docs/design/walk.md'), 'utf8')
    .split('\n')
    .map((row) => row.split('|')[2] ?? '')
    .flatMap((column) => {
      let folder = '';
      return [...column.matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => {
        if (name.includes('/')) folder = dirname(name);
        return join(folder, basename(name));
      });
    });
}

/** The names of all source files of the package that has the file. */
function sourcesOf(file: string): readonly string[] {
  const [name = ''] = file.split('/');
  const sources = readdirSync(join(ROOT, 'packages', name, 'src'), {
    recursive: true,
    encoding: 'utf8',
  });
  return sources.map((path) => basename(path));
}

const files = filesOfWalk();

test('every step of the walk is found', () => {
  expect(files).toContain(FIRST_FILE);
  expect(files.length).toBeGreaterThan(20);
});

describe('each step is there, and its header names the steps before and after it', () => {
  test.each(files)('%s', (name) => {
    const path = join(ROOT, 'packages', name);
    expect(existsSync(path), name).toBe(true);
    const [header = ''] = readFileSync(path, 'utf8').split('*/');
    // The socket is the first step.
    const words = name === FIRST_FILE ? [/after/i] : [/before/i, /after/i];
    for (const word of words) expect(header, name).toMatch(word);
    const named = [...header.matchAll(/`((?:[\w-]+\/)*)([\w-]+\.ts)`/g)];
    for (const [text, folder, file = ''] of named) {
      // A name without a folder is a file of the same package.
      const found = folder
        ? existsSync(join(ROOT, 'packages', folder, file)) ||
          existsSync(join(ROOT, 'packages', name.split('/')[0] ?? '', folder, file))
        : sourcesOf(name).includes(file);
      expect(found, `${name} names ${text}`).toBe(true);
    }
  });
});
