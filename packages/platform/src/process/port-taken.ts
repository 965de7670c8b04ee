/** The error for a port that cannot be listened on; it names the setting to change. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { AppError } from '@sluice/domain/values/errors';

export interface WantedPort {
  /** Prefix of its settings: `API` of `API_HOST` and `API_PORT`. */
  readonly owner: string;
  readonly host: string;
  readonly port: number;
}

/**
 * The error of a server that cannot listen.
 *
 * @param cause - the system's error, if there is one.
 */
export function portTaken({ owner, host, port }: WantedPort, cause?: unknown): AppError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return new AppError('PORT_TAKEN', whyNot({ owner, host, port }, code), { cause });
}

function whyNot({ owner, host, port }: WantedPort, code: unknown): string {
  const free = port > 50_000 ? port - 10_000 : port + 10_000;
  const other = `choose another port, such as ${owner}_PORT=${free}`;
  switch (code) {
    case 'EADDRINUSE':
      return `another process listens on ${host}:${port}; stop it, or ${other}`;
    case 'EACCES':
      return `this user may not listen on ${host}:${port}; ${other}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine; correct ${owner}_HOST`;
    default:
      return `${host}:${port} cannot be listened on; correct ${owner}_HOST, or ${other}`;
  }
}

/** Asks for a port before anything is started. @throws AppError PORT_TAKEN */
export async function requireFreePort(wanted: WantedPort): Promise<void> {
  const listener = createServer();
  listener.listen(wanted.port, wanted.host);
  try {
    await once(listener, 'listening');
  } catch (cause) {
    throw portTaken(wanted, cause);
  }
  listener.close();
  await once(listener, 'close');
}
