/** The nginx of this machine with `infra/proxy/nginx.conf`, but for the ports. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '@sluice/platform/testing/free-port';

const READY_POLLS_MAX = 100;

export interface Nginx {
  /** The ports on which it takes the calls of intake and of the API. */
  readonly ports: { readonly intake: number; readonly api: number };
  stop(): Promise<void>;
}

/**
 * @param behind - the ports of the two services.
 * @throws Error if nginx is not installed or does not take the file.
 */
export async function startNginx(
  configuration: string,
  directory: string,
  behind: { readonly intake: number; readonly api: number },
): Promise<Nginx> {
  const ports = { intake: await findFreePort(), api: await findFreePort() };
  const text = (await readFile(configuration, 'utf8'))
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${behind.intake}`)
    .replaceAll('127.0.0.1:8090', `127.0.0.1:${behind.api}`)
    .replace('listen 8443;', `listen 127.0.0.1:${ports.intake};`)
    .replace('listen 8444;', `listen 127.0.0.1:${ports.api};`);
  const file = join(directory, 'nginx.conf');
  await writeFile(file, text);
  const log = join(directory, 'nginx.log');
  const child = spawn(
    'nginx',
    ['-c', file, '-e', log, '-g', `daemon off; pid ${join(directory, 'nginx.pid')};`],
    { stdio: 'ignore' },
  );
  let failure: string | undefined;
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure = `nginx is needed: ${error.message}`;
      resolve();
    });
    child.once('exit', (code) => {
      failure ??= `nginx ended with ${code}`;
      resolve();
    });
  });
  for (let poll = 0; !(await isListening(ports.api)); poll++) {
    if (failure !== undefined || poll === READY_POLLS_MAX)
      throw new Error(
        `${failure ?? 'nginx does not listen'}: ${await readFile(log, 'utf8').catch(() => '')}`,
      );
    await sleep(50);
  }
  return {
    ports,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
