/** The package as it is published: packed, installed into a project of its own, and used there as both kinds of module. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const TSC = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url));

/** The pinned one, and the machine's: CI's is the oldest that installs, Node 20. */
const NODES = [
  process.execPath,
  ...(process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
    .slice(0, 1),
].map((file) => ({ file, version: String(spawnSync(file, ['--version']).stdout).trim() }));

let project: string;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'sluice-test-packed-'));
  await run('npm', ['pack', '--pack-destination', project, '--loglevel=error'], { cwd: PACKAGE });
  const [archive = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'));
  await writeFile(join(project, 'package.json'), '{"name":"receiver","version":"1.0.0"}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${archive}`], {
    cwd: project,
  });
});
afterAll(() => rm(project, { recursive: true, force: true }));

const PROGRAM = `
const headers = {
  'x-svc-timestamp': '1692633432',
  'x-svc-signature': 'd7c655389bb364d3e8bdbb6ec18a7f1b6cf91f39bba647554ada78aa61de37b9',
};
const secret = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';
const at = { nowMs: 1692633432000 };
console.log(JSON.stringify([
  verifyDelivery(headers, '{"key": "value"}', secret, at),
  whyRefused(headers, '{"key": "value"} ', secret, at),
]));
`;
const KINDS = [
  ['an ES module', 'receiver.mjs', `import { verifyDelivery, whyRefused } from '@sluice/verify';`],
  ['CommonJS', 'receiver.cjs', `const { verifyDelivery, whyRefused } = require('@sluice/verify');`],
] as const;

for (const { file, version } of NODES)
  test.each(KINDS)(`verifies as %s on ${version}`, async (_, name, first) => {
    await writeFile(join(project, name), `${first}\n${PROGRAM}`);
    const { stdout } = await run(file, [name], { cwd: project });
    expect(JSON.parse(stdout)).toEqual([true, 'wrong_signature']);
  });

test('has the licence, the types and the ports, and no other file of the monorepo', async () => {
  const folder = join(project, 'node_modules/@sluice/verify');
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  expect(
    files
      .filter((each) => each.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
      .toSorted(),
  ).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
    'ports/verify_delivery.go',
    'ports/verify_delivery.py',
    'src/verify-delivery.cjs',
    'verify-delivery.d.cts',
  ]);
  const made = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as object;
  expect(made).toMatchObject({ name: '@sluice/verify', license: 'Apache-2.0' });
  expect(made).not.toHaveProperty('private');
  expect(made).not.toHaveProperty('dependencies');
});

test.each([
  ['an ES module', 'module'],
  ['CommonJS', 'commonjs'],
])('is typed for a project that is %s', async (_, type) => {
  const folder = join(project, type);
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type }));
  await writeFile(
    join(folder, 'receiver.ts'),
    `import { verifyDelivery, whyRefused, type Refusal } from '@sluice/verify';
export const isGenuine: boolean = verifyDelivery({}, '', 'secret', { toleranceSeconds: 60 });
export const refusal: Refusal | undefined = whyRefused(new Map<string, string>() as never, new Uint8Array(), ['a', 'b']);
// @ts-expect-error -- a number is no secret
verifyDelivery({}, '', 1);
`,
  );
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--types', ''];
  // It writes the faults to stdout, and fails.
  expect((await run(TSC, [...flags, 'receiver.ts'], { cwd: folder })).stdout).toBe('');
});
