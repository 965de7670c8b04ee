/** Asks for ports before anything is started, so that a taken one is one clear line. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { AppError } from '@sluice/domain/errors';

export interface WantedPort {
  /** The setting that names it. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
}

/** @throws AppError PORT_TAKEN naming the setting to change. */
export async function requireFreePort({ setting, host, port }: WantedPort): Promise<void> {
  const listener = createServer();
  listener.listen(port, host);
  try {
    await once(listener, 'listening');
  } catch (cause) {
    const reason = explain((cause as NodeJS.ErrnoException).code, host, port);
    const example = port > 50_000 ? port - 10_000 : port + 10_000;
    throw new AppError(
      'PORT_TAKEN',
      `${reason}; choose another port: ${setting}=${example} npm start`,
      { cause },
    );
  }
  listener.close();
  await once(listener, 'close');
}

function explain(code: string | undefined, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `another process listens on ${host}:${port}`;
  if (code === 'EACCES') return `this user may not listen on ${host}:${port}`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${host} is no address of this machine`;
  return `${host}:${port} cannot be listened on (${code})`;
}
