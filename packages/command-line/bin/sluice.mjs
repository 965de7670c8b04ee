#!/usr/bin/env node
// Plain JavaScript for whatever Node the machine has: starts the real program on the pinned one.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const pinned = fileURLToPath(new URL('../../../node_modules/node/bin/node', import.meta.url));
const program = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const { status, signal } = spawnSync(
  existsSync(pinned) ? pinned : process.execPath,
  ['--disable-warning=ExperimentalWarning', program, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);
process.exit(status ?? (signal === 'SIGINT' ? 130 : 1));
