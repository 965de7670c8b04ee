/** `npm run mutate`: its mutants, and its report of the ones that tests notice or miss. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { changedLines, isKeptAsEquivalent } from '../mutation/equivalent-mutants.ts';
import { GUARDED_FILES } from '../mutation/guarded-files.ts';
import { mutantsOf, mutate } from '../mutation/mutants.ts';
import { nearestTests } from '../mutation/nearest-tests.ts';
import { tableOf } from '../mutation/run-table.ts';

const SCRIPTS = fileURLToPath(new URL('..', import.meta.url));
/** Of a command that runs Vitest. */
const RUN_MS_MAX = 270_000;

const mutatedTexts = (text: string): string[] =>
  mutantsOf('a.ts', text).map((mutant) => mutate(text, mutant));

describe('mutants', () => {
  test.each<[string, string[]]>([
    ['a < b;', ['a <= b;', 'a >= b;']],
    ['if (a) b();', ['if (true) b();', 'if (false) b();', 'if (a) ;']],
    ['const a = b ?? c;', ['const a = (b);', 'const a = (c);']],
    ['const a = !b;', ['const a = b;']],
    ['const a = 5_000;', ['const a = (5_000 * 2);']],
    ['const a = b.filter(c);', ['const a = b;']],
    ['const a = b.some(c);', ['const a = b.every(c);']],
    ["const a: 'x' | 'y' = 'x';", ["const a: 'x' | 'y' = '';"]],
    ['function a() { return b; }', ['function a() { return undefined; }']],
    [
      'const a = (b as number) + 1;',
      ['const a = (b as number) - 1;', 'const a = (b as number) + 0;'],
    ],
  ])('of %s', (text, expected) => {
    expect(mutatedTexts(text)).toEqual(expect.arrayContaining(expected));
  });

  test.each([
    "import a from 'a';",
    "export { a } from 'a';",
    "export type { A } from 'a';",
    'throw new TypeError(`no ${a}`);',
    "logger.warn({ a: 1 }, 'no');",
    "type A = 'a' | 1;",
    "'use strict';",
    'const a = b.toString();',
  ])('none of %s', (text) => {
    expect(mutatedTexts(text).filter((mutated) => mutated !== ';')).toEqual([]);
  });

  test('of SQL: conditions, comparisons, arguments, assignments and locks, with the values in them', () => {
    const text =
      'sql`update t set a = ${a}, b = null where x <= ${y} and z = coalesce(${p}, q) returning a`;';
    expect(mutatedTexts(text)).toEqual(
      expect.arrayContaining([
        'sql`update t set  b = null where x <= ${y} and z = coalesce(${p}, q) returning a`;',
        'sql`update t set a = ${a} where x <= ${y} and z = coalesce(${p}, q) returning a`;'.replace(
          '} where',
          '}where',
        ),
        'sql`update t set a = ${a}, b = null where true and z = coalesce(${p}, q) returning a`;',
        'sql`update t set a = ${a}, b = null where x < ${y} and z = coalesce(${p}, q) returning a`;',
        'sql`update t set a = ${a}, b = null where x <= ${y} returning a`;',
        'sql`update t set a = ${a}, b = null where x <= ${y} and z = coalesce( q, ${p}) returning a`;',
      ]),
    );
    expect(mutatedTexts('sql`select a from t for update`;')).toContain('sql`select a from t `;');
  });

  test('the line number and the lines before and after the change identify a mutant', () => {
    const text = '\n  const a = 1;\n  const b = a <\n    2;\n';
    const [mutant] = mutantsOf('a.ts', text).filter(({ kind }) => kind === 'operator');
    expect(mutant && changedLines(text, mutant)).toEqual({
      line: 3,
      occurrence: 1,
      from: 'const b = a <\n    2;',
      to: 'const b = a <= 2;',
    });
  });
});

test('an equivalent mutant is known by its place, if its lines stand in the file twice', () => {
  const text = 'if (a < b) c();\nif (a < b) d();\nif (a < b) c();\n';
  const changes = mutantsOf('a.ts', text)
    .map((mutant) => changedLines(text, mutant))
    .filter(({ to }) => to === 'if (a <= b) c();');
  const kept = { file: 'a.ts', from: 'if (a < b) c();', to: 'if (a <= b) c();', reason: '' };
  const isKept = (occurrence: object) =>
    changes.map((change) => isKeptAsEquivalent(change, text, [{ ...kept, ...occurrence }]));
  expect(isKept({ occurrence: 2 })).toEqual([false, true]);
  expect(() => isKept({})).toThrow('needs an occurrence');
});

test('tests are found by imports, also through other files, the nearest first', () => {
  const imports = (...targets: string[]) =>
    targets.map((target) => ({ specifier: target, target }));
  const graph = [
    { path: 'packages/a/src/rule.ts', imports: [] },
    { path: 'packages/a/src/use.ts', imports: imports('packages/a/src/rule.ts') },
    { path: 'packages/b/test/use.test.ts', imports: imports('packages/a/src/use.ts') },
    { path: 'packages/a/test/other.test.ts', imports: imports('packages/a/src/rule.ts') },
    { path: 'packages/a/test/helper.ts', imports: imports('packages/a/src/rule.ts') },
    { path: 'packages/a/test/rule.test.ts', imports: imports('packages/a/test/helper.ts') },
    { path: 'packages/a/test/rule-limits.test.ts', imports: imports('packages/a/test/helper.ts') },
    { path: 'packages/a/test/ruled.test.ts', imports: imports('packages/a/test/helper.ts') },
    { path: 'packages/a/test/none.test.ts', imports: [] },
  ];
  expect(nearestTests(graph, 'packages/a/src/rule.ts')).toEqual([
    { path: 'packages/a/test/rule-limits.test.ts', distance: 2 },
    { path: 'packages/a/test/rule.test.ts', distance: 2 },
    { path: 'packages/a/test/other.test.ts', distance: 1 },
    { path: 'packages/a/test/ruled.test.ts', distance: 2 },
    { path: 'packages/b/test/use.test.ts', distance: 2 },
  ]);
  // Of a file that no test of its own package reaches.
  expect(nearestTests(graph, 'packages/a/src/use.ts')).toEqual([
    { path: 'packages/b/test/use.test.ts', distance: 1 },
  ]);
});

/** The lines of a run over these lines of the sample, and the end of the command. */
async function runSample(lines: readonly number[], ...options: readonly string[]) {
  // The environment of a nested run must have no variable of this one.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('VITEST') && name !== 'NODE_ENV',
    ),
  );
  const args = ['mutate.ts', '--in', 'mutation/sample', 'price', ...options];
  for (const line of lines) args.push('--line', String(line));
  const { code, stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: SCRIPTS,
    env,
    timeout: RUN_MS_MAX,
  }).then(
    (ended) => ({ code: 0, ...ended }),
    (error: { code: number; stdout: string }) => error,
  );
  const results = stdout.split(/^(?=survived|killed)/m).map((part) => part.trim());
  const resultOf = (mutated: string) =>
    results.find((part) => part.includes(`+ ${mutated}`)) ?? stdout;
  return { code, stdout, resultOf };
}

// It runs Vitest for each mutant, one after another.
describe('a run', { timeout: RUN_MS_MAX + 30_000 }, () => {
  test('separates survivors from killed mutants, and writes no file', async () => {
    const stateOfTree = () =>
      execFileSync('git', ['status', '--porcelain', 'mutation/sample'], {
        cwd: SCRIPTS,
        encoding: 'utf8',
      });
    const before = stateOfTree();
    const { code, resultOf } = await runSample([3, 4]);
    expect(resultOf('if (units > 100) return')).toMatch(/^survived/);
    expect(resultOf('if (false) return')).toMatch(/^killed/);
    // Each mutant by itself: after one that was killed the next runs on the code as it is.
    expect(resultOf('if (units >= (100 * 2)) return')).toMatch(/^survived/);
    expect(resultOf('return units / unitCents;')).toMatch(/^killed[^]*price\.test\.ts: a price/);
    expect(code).toBe(1);
    expect(stateOfTree()).toBe(before);
  });

  test('ends a process that a failed test leaves in a loop, and goes on with the next mutant', async () => {
    const { resultOf } = await runSample([12]);
    expect(resultOf(';')).toMatch(/^killed/);
    expect(resultOf('left.shift();')).toMatch(/^survived/);
  });

  test('of three files, two at once, has the counts of each, and keeps their mutants apart', async () => {
    const { code, stdout } = await runSample(
      [3],
      'price',
      'price',
      '--at-once',
      '2',
      '--count',
      '2',
      '--seed',
      '2',
    );
    const rows = [...stdout.matchAll(/^\| `price\.ts` \| 27 \|(.+)\| 2 \|/gm)];
    expect(rows.map(([, counts]) => counts?.trim())).toEqual(Array(3).fill('2 | 1 | 1 | 0'));
    expect(code).toBe(1);
  });
});

test('the page of mutation runs has a row for each guarded file, in the form that a run prints', () => {
  const page = readFileSync(`${SCRIPTS}/../docs/contributing/mutation-runs.md`, 'utf8');
  const [head = ''] = tableOf([], { seed: '1', commit: 'a' }).split('\n');
  expect(page).toContain(head);
  const rows = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path]) => `packages/${path}`);
  expect(rows.toSorted()).toEqual(GUARDED_FILES.map(({ path }) => path).toSorted());
  for (const { path } of GUARDED_FILES) expect(existsSync(`${SCRIPTS}/../${path}`)).toBe(true);
});
