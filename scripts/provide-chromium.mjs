/** A Chromium for the tests of pages: the machine's, Debian's where that is ours to install, else one of npm. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fail, runQuietly } from './run-quietly.mjs';

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome'];
/** Also read by `packages/standalone/test/integration/chromium-under-test.ts`. */
const FOLDER = fileURLToPath(new URL('../node_modules/.sluice-chromium', import.meta.url));
/** It has the program in it, and asks no other server for one. */
const NPM_PACKAGE = '@sparticuz/chromium@153.0.0';
const UNPACK = `import chromium from '@sparticuz/chromium'; console.log(await chromium.executablePath())`;
const ADVICE =
  'the tests need a real Chromium: install chromium (Debian, Ubuntu: apt-get install chromium; macOS: brew install chromium), or set TEST_CHROMIUM to its path';

/** Ends the process with advice where there is none and it cannot be installed. */
export async function provideChromium() {
  if (process.env.TEST_CHROMIUM || COMMANDS.some(runs)) return;
  if (process.getuid?.() === 0 && isAptMachine()) {
    await runQuietly('updating the package lists', 'apt-get', ['update', '-qq']);
    const words = ['install', '-y', '-qq', '--no-install-recommends', 'chromium'];
    await runQuietly('installing chromium', 'apt-get', words);
    if (runs('chromium')) return;
  }
  const words = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', NPM_PACKAGE];
  await runQuietly(`fetching ${NPM_PACKAGE}`, 'npm', words);
  const file = unpack();
  if (file === '' || !runs(file)) fail(ADVICE);
  writeFileSync(`${FOLDER}/path`, file);
}

/** The path of the program; empty where there is none. */
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
