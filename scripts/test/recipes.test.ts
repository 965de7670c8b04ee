/**
 * The recipes of `docs/contributing`: each diff applies to a copy of this checkout, each command works there, and the
 * checks at the end of the page pass. The copy has the uncommitted files too; the checkout itself stays as it is.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type {} from '@sluice/database/testing/testing';
import type {} from '@sluice/platform/testing/testing';
import { expect, inject, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = join(ROOT, 'docs/contributing');

interface Step {
  readonly kind: 'diff' | 'sh';
  readonly text: string;
}

/** The fenced blocks of a page that somebody follows, in their order. */
const stepsOf = (page: string): Step[] =>
  [...page.matchAll(/^```(diff|sh)\n([\s\S]*?)^```$/gm)].map(([, kind, text = '']) => ({
    kind: kind as Step['kind'],
    text,
  }));

const recipes = readdirSync(PAGES)
  .map((name) => ({ name, steps: stepsOf(readFileSync(join(PAGES, name), 'utf8')) }))
  .filter(({ steps }) => steps.some(({ kind }) => kind === 'diff'));

function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-recipe-'));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 16e6,
  });
  for (const path of listed.split('\n').filter((name) => name !== '')) {
    // A file that was removed and not committed yet.
    if (!existsSync(join(ROOT, path))) continue;
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    copyFileSync(join(ROOT, path), join(copy, path));
  }
  linkModules(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** The installed packages by links; our own lead to the copy, since theirs are relative. */
function linkModules(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.name === '@sluice') linkModules(source, target);
    else symlinkSync(entry.isSymbolicLink() ? readlinkSync(source) : source, target);
  }
}

function environment(copy: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST'));
  return {
    ...Object.fromEntries(kept),
    PATH: `${copy}/node_modules/.bin:${process.env['PATH']}`,
    TEST_DATABASE_URL: inject('testServerUrl'),
    TEST_REDIS_URL: inject('testRedisUrl'),
  };
}

test('there are recipes, and each ends with checks', () => {
  expect(recipes.map(({ name }) => name)).toEqual([
    'add-a-channel.md',
    'add-a-payment-provider.md',
    'add-an-endpoint.md',
    'add-an-event-type.md',
  ]);
  for (const { steps } of recipes) expect(steps.at(-1)?.kind).toBe('sh');
});

test.each(recipes)(
  '$name: every step works, and the checks pass',
  // It runs the compiler, and tests that start services.
  { timeout: 900_000 },
  ({ steps }) => {
    const copy = copyCheckout();
    const run = (program: string, args: readonly string[], input?: string): void => {
      execFileSync(program, args, { cwd: copy, env: environment(copy), input, stdio: 'pipe' });
    };
    const follow = ({ kind, text }: Step): void => {
      if (kind === 'diff') run('git', ['apply', '--whitespace=error', '-'], text);
      else for (const line of text.trim().split('\n')) run('bash', ['-c', line]);
    };
    for (const step of steps) expect(() => follow(step), step.text).not.toThrow();
  },
);
