/**
 * A process that is no part of the product: how long it takes to answer shows how busy the machine is.
 *
 * Before each answer it brings a byte to the disk, for tested processes wait for that too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const PROGRAM = `
  const { fsyncSync, mkdtempSync, openSync, rmSync, writeSync } = require('node:fs');
  const folder = mkdtempSync(require('node:path').join(require('node:os').tmpdir(), 'sluice-test-bystander-'));
  const file = openSync(folder + '/bytes', 'w');
  rmSync(folder, { recursive: true });
  process.on('message', () => {
    writeSync(file, '.', 0);
    fsyncSync(file);
    process.send('done');
  });
  process.send('there');`;

export interface Bystander {
  /** One question at a time. */
  ask(): Promise<unknown>;
  end(): void;
}

/** It ends with this process at the latest. */
export async function startBystander(): Promise<Bystander> {
  const child = spawn(process.execPath, ['-e', PROGRAM], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  return {
    ask() {
      const answer = once(child, 'message');
      child.send('question');
      return answer;
    },
    end: () => void child.kill(),
  };
}
