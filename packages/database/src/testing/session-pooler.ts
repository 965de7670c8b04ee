/**
 * For tests: a small pooler in front of a real Postgres, as PgBouncer is one. Clients are let in without a password and are
 * given a session of Postgres for each transaction, or for as long as they are connected. Like PgBouncer it refuses who
 * begins with a setting that it cannot follow.
 *
 *   client ── startup ──▶ answered here
 *          ── message ──▶ has a session? else the one that was given back last, else a new one
 *          ◀── answer ──  "ready, no transaction": the session is given back (`transaction`)
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';

export interface SessionPooler {
  /** The URL that was given, through the pooler. */
  readonly url: string;
  close(): Promise<void>;
}

const READY = 'Z'.charCodeAt(0);
const IDLE = 'I'.charCodeAt(0);
const TERMINATE = 'X'.charCodeAt(0);
/** Type and length. */
const HEAD_SIZE_BYTES = 5;
const READY_SIZE_BYTES = 6;
/** Authentication done; a process id and key of no process; ready. */
const WELCOME = Buffer.concat([
  Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]),
  Buffer.from([0x4b, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]),
  Buffer.from([READY, 0, 0, 0, READY_SIZE_BYTES - 1, IDLE]),
]);

/** Parameters that PgBouncer accepts from a client that begins (its manual, `ignore_startup_parameters`). */
const TAKEN_PARAMETERS = new Set([
  'user',
  'database',
  'application_name',
  'client_encoding',
  'datestyle',
  'timezone',
  'standard_conforming_strings',
]);

interface Session {
  readonly stream: Socket;
  /** The client that gets its answers. */
  client: Socket | undefined;
}

type PoolMode = 'transaction' | 'session' | 'silent';

/** @param mode - of all, or as long as so many clients have come. `silent`: as while Postgres is away. */
export async function startSessionPooler(
  url: string,
  mode: PoolMode | ((clientCount: number) => PoolMode),
): Promise<SessionPooler> {
  let clientCount = 0;
  const modeNow = () => (typeof mode === 'function' ? mode(clientCount) : mode);
  const free: Session[] = [];
  const sockets = new Set<Socket>();

  const openSession = async (): Promise<Session> => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    sockets.add(stream);
    stream.removeAllListeners('data');
    const session: Session = { stream, client: undefined };
    const isDone = watchForReady();
    stream.on('data', (bytes: Buffer) => {
      session.client?.write(bytes);
      if (isDone(bytes) && modeNow() === 'transaction') release(session);
    });
    return session;
  };
  const sessions = new Map<Socket, Promise<Session>>();
  const release = (session: Session): void => {
    if (session.client) sessions.delete(session.client);
    session.client = undefined;
    free.push(session);
  };
  const sessionOf = (client: Socket): Promise<Session> => {
    const found = sessions.get(client);
    if (found) return found;
    const idle = free.pop();
    const taken = (idle ? Promise.resolve(idle) : openSession()).then((session) => {
      session.client = client;
      return session;
    });
    sessions.set(client, taken);
    return taken;
  };

  const server = createServer((client) => {
    clientCount++;
    sockets.add(client);
    client.on('error', () => undefined);
    client.once('close', () => {
      sockets.delete(client);
      // A session that is left in a transaction is of no use to anyone else.
      void sessions.get(client)?.then(({ stream }) => stream.destroy());
    });
    client.once('data', (startup: Buffer) => {
      const refused = parametersOf(startup).find((name) => !TAKEN_PARAMETERS.has(name));
      if (refused !== undefined) {
        client.end(refusal(`unsupported startup parameter: ${refused}`));
        return;
      }
      client.write(WELCOME);
      // One after another, or the second message could be sent first.
      let sending = Promise.resolve();
      client.on('data', (bytes: Buffer) => {
        if (bytes[0] === TERMINATE || modeNow() === 'silent') return;
        sending = sending.then(async () => {
          (await sessionOf(client)).stream.write(bytes);
        });
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = new URL(url);
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: address.href,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

/** Of a startup message: its length, the version, then names and values, each ended by a zero. */
function parametersOf(startup: Buffer): string[] {
  const texts = startup.toString('utf8', 2 * 4).split('\0');
  return texts
    .filter((name, place) => place % 2 === 0 && name !== '')
    .map((name) => name.toLowerCase());
}

function refusal(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeUInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
}

/** @returns whether the answer that these bytes go on with is at its end, outside of a transaction. */
function watchForReady(): (bytes: Buffer) => boolean {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    let isDone = false;
    while (rest.length >= HEAD_SIZE_BYTES) {
      const sizeBytes = 1 + rest.readUInt32BE(1);
      if (rest.length < sizeBytes) break;
      isDone = rest[0] === READY && rest[HEAD_SIZE_BYTES] === IDLE;
      rest = rest.subarray(sizeBytes);
    }
    return isDone && rest.length === 0;
  };
}
