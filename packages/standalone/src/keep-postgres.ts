/**
 * The embedded Postgres, kept up: one that ends without being asked to is started again, on the
 * same port, after a pause that grows. The services wait for it meanwhile: their pools connect
 * again, intake keeps calls on its own disk, and the worker tries its commit batch again.
 */
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '@sluice/database/embedded/embedded-postgres';

const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 30_000;
const STABLE_AFTER_MS = 60_000;

export interface KeepPostgresOptions {
  readonly directory: string;
  readonly memoryBytes: number;
  readonly onProgress: (line: string) => void;
  /** A line about an unexpected end, and its result. */
  readonly onNote: (line: string) => void;
}

export interface KeptPostgres {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** @throws AppError as `startEmbeddedPostgres` does, for the first start only. */
export async function keepPostgres(
  databaseName: string,
  options: KeepPostgresOptions,
): Promise<KeptPostgres> {
  const { directory, memoryBytes, onProgress, onNote } = options;
  const start = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ directory, durability: 'full', memoryBytes, onProgress });
  const first = await start();
  await first.createDatabase(databaseName);

  const stopping = new AbortController();
  const keeping = keepUp(first);

  async function keepUp(started: EmbeddedPostgres): Promise<void> {
    let server: EmbeddedPostgres | undefined = started;
    let pauseMs = PAUSE_MS_MIN;
    while (!stopping.signal.aborted) {
      const startedAtMs = performance.now();
      if (server) {
        const lastWords = await endOrStop(server, stopping.signal);
        if (lastWords === undefined) return server.stop();
        onNote(`Postgres ended (log ${server.logFile}):\n${lastWords}`);
      }
      if (performance.now() - startedAtMs > STABLE_AFTER_MS) pauseMs = PAUSE_MS_MIN;
      onNote(`starting Postgres again in ${pauseMs / 1000} s`);
      await pause(pauseMs, stopping.signal);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
      if (stopping.signal.aborted) return;
      server = await start().catch((error: Error) => {
        onNote(error.message);
        return undefined;
      });
      if (server && server.port !== first.port) {
        onNote(
          `Postgres' port ${first.port} was taken; the services look for it there, so it is tried again`,
        );
        await server.stop();
        server = undefined;
      }
      if (server) onNote('Postgres is there again');
    }
  }

  return {
    url: first.url(databaseName),
    port: first.port,
    stop() {
      stopping.abort();
      return keeping;
    },
  };
}

/** The server's last words, or undefined if a stop came first. */
function endOrStop(server: EmbeddedPostgres, stop: AbortSignal): Promise<string | undefined> {
  const stopped = new Promise<undefined>((resolve) => {
    stop.addEventListener('abort', () => resolve(undefined), { once: true });
    if (stop.aborted) resolve(undefined);
  });
  return Promise.race([server.ended, stopped]);
}

function pause(durationMs: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, durationMs);
    stop.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
