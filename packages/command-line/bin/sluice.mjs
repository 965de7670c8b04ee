#!/usr/bin/env node
// Plain JavaScript for any Node of the machine: starts the real program on the pinned one, in the image on its own.
// In a checkout `./sluice` installs missing packages and starts the same program.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const pinned = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url));
const program = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const child = spawn(
  existsSync(pinned) ? pinned : process.execPath,
  ['--disable-warning=ExperimentalWarning', program, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);
// The program writes its last line before the shell has the terminal again. Ctrl-C may reach it from there as well.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('close', (status, signal) =>
  process.exit(status ?? (signal ? 128 + constants.signals[signal] : 1)),
);
