/**
 * A process that is no part of the product: how long it takes to answer shows how busy the machine is.
 *
 * Before each answer it brings a byte to the disk, for tested processes wait for that too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const PROGRAM = `
  const files = require('fs')
  const folder = files.mkdtempSync(require('os').tmpdir() + '/sluice-test-bystander-')
  const file = files.openSync(folder + '/bytes', 'w')
  files.rmSync(folder, { recursive: true })
  process.on('message', () => {
    files.writeSync(file, '.', 0)
    files.fsyncSync(file)
    process.send('done')
  })
  process.send('there')`;

export interface Bystander {
  /** One question at a time. */
  ask(): Promise<unknown>;
  end(): void;
}

/** It ends with this process at the latest. @param nodePath - of Node, as `process.execPath`. */
export async function startBystander(nodePath: string): Promise<Bystander> {
  const child = spawn(nodePath, ['-e', PROGRAM], {
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
