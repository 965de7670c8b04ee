#!/usr/bin/env node
// Plain JavaScript for any Node of the machine: starts the real program on the pinned one, in the image on its own.
// In a checkout `./sluice` installs missing packages and starts the same program.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const pinned = pathOf('../../../node_modules/.bin/node');
const program = pathOf('../src/main.ts');
// Half the time of a start.
const quick = new URL('../../../scripts/quick-start.mjs', import.meta.url).href;
const child = spawn(
  existsSync(pinned) ? pinned : process.execPath,
  ['--disable-warning=ExperimentalWarning', `--import=${quick}`, program, ...process.argv.slice(2)],
  {
    stdio: 'inherit',
    env: { NODE_COMPILE_CACHE: pathOf('../../../node_modules/.cache/node'), ...process.env },
  },
);
// The program writes its last line before the shell has the terminal again. Ctrl-C may reach it from there as well.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('close', (status, signal) =>
  process.exit(status ?? (signal ? 128 + constants.signals[signal] : 1)),
);
