/**
 * `npm run check`: every rule that a program can hold, a line each. Output of failed checks is shown at the end. The
 * checks work without the network.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Each of these programs uses more than one thread itself. */
const CONCURRENCY = Math.max(2, Math.floor(availableParallelism() / 2));
/**
 * The threads of `tsc` check the types that they share once each: `packages/api` took 13 s of CPU, and 8 s with one
 * thread. On two cores two programs at a time use both.
 */
const THREADS = availableParallelism() <= CONCURRENCY ? ['--singleThreaded'] : [];

/** Vague names, which do not describe their content, and so come to hold everything. */
const VAGUE_NAMES =
  /^(utils?|helpers?|common|shared|misc|types|index|managers?|data|info|(.*-)?(service|manager|utils?|helpers?))$/;

process.chdir(ROOT);
const outputs = mkdtempSync(join(tmpdir(), 'sluice-check-'));
process.once('exit', () => rmSync(outputs, { recursive: true, force: true }));
let outputCount = 0;
const packages = [
  ...readdirSync('packages').map((name) => `packages/${name}`),
  'benchmarks',
  'scripts',
];

/** @typedef {{ name: string, run: () => Promise<{ isPassed: boolean, output: string }> }} Check */

/** @type {Check[]} */
const checks = [
  ...packages
    .flatMap((folder) => [folder, `${folder}/test`])
    .filter((folder) => existsSync(`${folder}/tsconfig.json`))
    .map((folder) => program(`types ${folder}`, 'tsc', '-p', folder, ...THREADS)),
  program('lint (oxlint)', 'oxlint', '--type-aware', '--deny-warnings'),
  program('format (oxfmt; "npm run format" mends it)', 'oxfmt', '--check'),
  program('boundaries (turbo)', 'turbo', 'boundaries'),
  // Offline: a package that the lockfile lacks would have to be asked for.
  program(
    'package-lock.json ("npm install --package-lock-only" mends it)',
    'npm',
    ...['ci', '--dry-run', '--offline', '--ignore-scripts', '--loglevel=error'],
  ),
  program('packages: licences, origins, install scripts', 'node', 'scripts/check-packages.ts'),
  program('dead code (knip)', 'knip', '--no-progress', '--no-config-hints'),
  program(
    'generated docs ("npm run docs" mends them)',
    'node',
    'scripts/generate-docs.ts',
    '--check',
  ),
  program(
    'types of the client ("npm run docs" mends them)',
    'node',
    'scripts/generate-client.ts',
    '--check',
  ),
  program(
    'the description by Redocly and Spectral (packages/api/src/openapi has it)',
    'node',
    '--disable-warning=ExperimentalWarning',
    'scripts/check-description.ts',
  ),
  program('manifests of Kubernetes', 'node', 'scripts/check-manifests.ts'),
  program('layers, cycles, homes of libraries', 'node', 'scripts/check-layers.ts'),
  program('citations of docs/spec', 'node', 'scripts/check-citations.ts'),
  program(
    'prose ("node scripts/check-prose.ts --list PATH" shows a file\'s findings)',
    'node',
    'scripts/check-prose.ts',
  ),
  program(
    'migrations ("npm run migrations:record" adds a new one)',
    'node',
    'scripts/check-migrations.ts',
  ),
  program(
    'compiled assembly ("npm run assembly" mends it)',
    'node',
    'scripts/compile-assembly.ts',
    '--check',
  ),
  { name: 'file names', run: async () => checkFileNames() },
];

/** @type {string[]} */
const failures = [];
const waiting = [...checks];
await Promise.all(Array.from({ length: CONCURRENCY }, runWaiting));
for (const failure of failures) console.log(failure);
console.log(
  failures.length === 0
    ? 'all checks passed'
    : `${failures.length} of ${checks.length} checks failed`,
);
process.exitCode = failures.length === 0 ? 0 : 1;

async function runWaiting() {
  for (let check = waiting.shift(); check; check = waiting.shift()) {
    const startedAtMs = performance.now();
    const { isPassed, output } = await check.run();
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
    console.log(`${isPassed ? 'ok    ' : 'FAILED'} ${seconds.padStart(5)} s  ${check.name}`);
    for (const [note] of isPassed ? output.matchAll(/^note: .*/gm) : [])
      console.log(`       ${note}`);
    if (!isPassed) failures.push(`\n── ${check.name}\n${output.trimEnd()}\n`);
  }
}

/**
 * @param {string} name
 * @param {string} command
 * @param {string[]} args
 * @returns {Check}
 */
function program(name, command, ...args) {
  const env = {
    ...process.env,
    PATH: `${ROOT}node_modules/.bin:${process.env['PATH']}`,
    TURBO_TELEMETRY_DISABLED: '1',
    TURBO_NO_UPDATE_NOTIFIER: '1',
    DO_NOT_TRACK: '1',
    NO_COLOR: '1',
  };
  const run = async () => {
    // A file, not a pipe: oxlint gives up when a pipe that Node made is full for a moment.
    const file = join(outputs, `${outputCount++}`);
    const log = openSync(file, 'w');
    const child = spawn(command, args, { env, stdio: ['ignore', log, log] });
    const [code] = await once(child, 'close').catch((error) => [error.message]);
    closeSync(log);
    return { isPassed: code === 0, output: readFileSync(file, 'utf8') || `ended with ${code}` };
  };
  return { name, run };
}

/** The folder listing is the architecture, so a name must describe its content. */
function checkFileNames() {
  const vague = packages
    .filter((folder) => folder !== 'scripts')
    .flatMap((folder) => [`${folder}/src`, `${folder}/test`].filter((path) => existsSync(path)))
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
    )
    .filter(
      (path) =>
        /\.tsx?$/.test(path) && VAGUE_NAMES.test(basename(path).replace(/(\.test)?\.tsx?$/, '')),
    );
  const output = vague
    .map((path) => `${path}: name it for the one noun or verb-phrase that it holds`)
    .join('\n');
  return { isPassed: vague.length === 0, output };
}
