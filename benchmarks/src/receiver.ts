/** The receiver of webhooks as its benchmark sees it: a process of its own (`receiver-server.ts`). */
import { join } from 'node:path';
import { startChildServer, type ChildServer } from './child-server.ts';
import type { World } from './world.ts';

export interface Receiver {
  readonly server: ChildServer;
  readonly port: number;
  /** Requests until this call, also repeated ones. */
  count(): Promise<number>;
  /** From when each was due to be sent to its arrival, since the last time that this was asked. */
  takeLatenciesMs(): Promise<number[]>;
  /** How many different events came so far. */
  distinctCount(): Promise<number>;
}

/** @param port to listen on, at every address of this machine. */
export async function startReceiver(world: World, port: number): Promise<Receiver> {
  const url = `http://127.0.0.1:${port}`;
  const server = await startChildServer({
    file: join(import.meta.dirname, 'receiver-server.ts'),
    environment: { PORT: String(port), LATENCIES: '1' },
    url,
    readyPath: '/count',
  });
  world.onClose(() => server.stop());
  const read = async (path: string) => (await fetch(url + path)).json();
  return {
    server,
    port,
    count: async () => Number(await read('/count')),
    takeLatenciesMs: async () => (await read('/latencies')) as number[],
    distinctCount: async () => Number(await read('/distinct')),
  };
}
