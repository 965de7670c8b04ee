/** The check of layers (`scripts/layers.ts`) fails on each kind of fault; on small graphs that are made up here. */
import { describe, expect, test } from 'vitest';
import { importsOf, type ImportingFile } from '../import-graph.ts';
import {
  cycleViolations,
  dependencyViolations,
  folderViolations,
  homeViolations,
  orderViolations,
} from '../layers.ts';
import { HOMES } from '../layer-order.ts';

const FOLDERS = { domain: ['apply', 'values'], worker: ['lane', 'http'] };

/** Files by path, with their text. */
const graphOf = (files: Record<string, string>): ImportingFile[] =>
  Object.entries(files).map(([path, text]) => ({ path, imports: importsOf(path, text) }));

describe('imports are found', () => {
  test.each([
    ["import { a } from './a.ts';", './a.ts'],
    ["import type { A } from './a.ts';", './a.ts'],
    ["import {\n  a,\n  type B as C,\n} from './a.ts';", './a.ts'],
    ["import './a.ts';", './a.ts'],
    ["export { a } from './a.ts';", './a.ts'],
    ["export * from './a.ts';", './a.ts'],
    ["const { a } = await import('./a.ts');", './a.ts'],
    ["let a: import('./a.ts').A;", './a.ts'],
  ])('in %j', (text, specifier) => {
    expect(importsOf('packages/worker/src/lane/b.ts', text)).toEqual([
      { specifier, target: 'packages/worker/src/lane/a.ts' },
    ]);
  });

  test('of another package, of a library and of Node', () => {
    const text = `import { z } from 'zod';\nimport { a } from '@sluice/domain/values/a';\nexport const TEXT = './no.ts';`;
    expect(importsOf('packages/worker/src/lane/b.ts', text)).toEqual([
      { specifier: 'zod', target: undefined },
      { specifier: '@sluice/domain/values/a', target: 'packages/domain/src/values/a.ts' },
    ]);
  });
});

describe('the order of folders', () => {
  test('a folder imports itself and those after it', () => {
    const graph = graphOf({
      'packages/worker/src/main.ts': "import './lane/a.ts';\nimport './http/b.ts';",
      'packages/worker/src/lane/a.ts': "import '../http/b.ts';\nimport './c.ts';",
      'packages/worker/src/http/b.ts': "import '@sluice/domain/apply/d';",
    });
    expect(orderViolations(graph, FOLDERS)).toEqual([]);
  });

  test.each([
    ["import type { A } from '../lane/a.ts';", 'lane/ comes before http/'],
    ["const load = () => import('../lane/a.ts');", 'lane/ comes before http/'],
    ["import type { A } from '@sluice/worker/lane/a';", 'lane/ comes before http/'],
    ["import type { Settings } from '../main.ts';", "the root of its package's src"],
  ])('%j in the folder that comes last fails', (text, problem) => {
    const graph = graphOf({ 'packages/worker/src/http/b.ts': text });
    expect(orderViolations(graph, FOLDERS)).toEqual([
      { path: 'packages/worker/src/http/b.ts', problem: expect.stringContaining(problem) },
    ]);
  });
});

describe('folders', () => {
  const problemsOf = (paths: readonly string[]) =>
    folderViolations(
      paths.map((path) => ({ path, imports: [] })),
      FOLDERS,
    ).map(({ path, problem }) => `${path} ${problem}`);
  const files = (folder: string, count: number) =>
    Array.from({ length: count }, (_, n) => `${folder}/file-${n}.ts`);

  test('one that the order does not name fails', () => {
    expect(
      problemsOf(['packages/worker/src/lane/new/a.ts', 'packages/fresh/src/part/a.ts']),
    ).toEqual([
      'packages/worker/src/lane/new has no place in the order of worker (scripts/layer-order.ts)',
      'packages/fresh/src/part has no place in the order of fresh (scripts/layer-order.ts)',
    ]);
  });

  test('15 files are enough for one', () => {
    expect(problemsOf(files('packages/worker/src/lane', 15))).toEqual([]);
    expect(problemsOf(files('packages/worker/src/lane', 16))).toEqual([
      'packages/worker/src/lane has 16 files, 15 at most: look for the second noun',
    ]);
  });

  test('a library has no file in the root of its src', () => {
    expect(problemsOf(['packages/worker/src/main.ts'])).toEqual([]);
    expect(problemsOf(['packages/domain/src/everything.ts'])).toEqual([
      'packages/domain/src/ has 1 files: a library has none in the root of its src',
    ]);
  });
});

describe('cycles', () => {
  test.each([
    ['of values', "import { b } from './b.ts';", "import { a } from './a.ts';"],
    ['of types', "import type { B } from './b.ts';", "import type { A } from './a.ts';"],
    ['by import()', "import type { B } from './b.ts';", "const a = await import('./a.ts');"],
  ])('%s fail, and are reported once, with their path', (_, a, b) => {
    const graph = graphOf({
      'packages/worker/src/lane/outside.ts': "import './a.ts';",
      'packages/worker/src/lane/a.ts': a,
      'packages/worker/src/lane/b.ts': b,
    });
    expect(cycleViolations(graph)).toEqual([
      {
        path: 'packages/worker/src/lane/a.ts',
        problem:
          'is in a cycle of imports: packages/worker/src/lane/a.ts → packages/worker/src/lane/b.ts → packages/worker/src/lane/a.ts',
      },
    ]);
  });

  test('files that import the same file are not a cycle', () => {
    const graph = graphOf({
      'packages/worker/src/lane/a.ts': "import './b.ts';\nimport './c.ts';",
      'packages/worker/src/lane/b.ts': "import './c.ts';",
      'packages/worker/src/lane/c.ts': '',
    });
    expect(cycleViolations(graph)).toEqual([]);
  });
});

describe('the home of a library', () => {
  test.each([
    ['uWebSockets.js', 'packages/intake/src/http/exchange.ts', 'packages/intake/src/server.ts'],
    ['bullmq', 'packages/worker/src/lane/a.ts', 'packages/platform/src/queue/queue.ts'],
    ['undici', 'packages/worker/src/http/http-client.ts', 'benchmarks/src/deliver-loop.ts'],
  ])('%s fails in %s and not in %s', (library, outside, inside) => {
    const text = `import { x } from '${library}';`;
    expect(homeViolations(graphOf({ [inside]: text }), HOMES)).toEqual([]);
    expect(homeViolations(graphOf({ [outside]: text }), HOMES)).toEqual([
      {
        path: outside,
        problem: expect.stringContaining(`imports ${library}: ${library} is imported only in`),
      },
    ]);
  });
});

describe('a package’s dependencies', () => {
  const DEPENDENCIES = { platform: ['domain'], database: ['domain'] };
  const problemsOf = (path: string) =>
    dependencyViolations(
      graphOf({ [path]: "import type { A } from '@sluice/database/people/a';" }),
      DEPENDENCIES,
    );

  test('a file of src imports those alone', () => {
    expect(problemsOf('packages/platform/src/queue/queue.ts')).toEqual([
      {
        path: 'packages/platform/src/queue/queue.ts',
        problem: expect.stringContaining("platform's dependencies do not name database"),
      },
    ]);
  });

  test('a test imports more, and a package itself', () => {
    expect(problemsOf('packages/platform/test/queue/queue.test.ts')).toEqual([]);
    expect(problemsOf('packages/database/src/people/b.ts')).toEqual([]);
  });
});
