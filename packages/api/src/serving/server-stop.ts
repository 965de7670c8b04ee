/**
 * The end of a process that answers calls, without one that is cut.
 *
 * New connections are not taken. Whoever has one hears `Connection: close` with the next answer and leaves; closed at
 * once, it would be closed on a call that is on its way. So calls go on being answered until none has come for a
 * while; then what is in progress is waited for, and what has not become a call is cut: a browser keeps connections on
 * which it has not sent anything yet. As intake does (`intake/src/stop-serving.ts`).
 */
import { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import type { ApiServer } from '../http/api-server.ts';

const QUIET_MS = 300;
/** Of those that go on sending on a connection that they were asked to close. */
const LINGER_MS_MAX = 5_000;
const LOOK_INTERVAL_MS = 10;

export interface ServerStopOptions {
  /** How long calls in progress are waited for: a body may come slowly, and a reader take nothing. */
  readonly inProgressMsMax: number;
}

export class ServerStop {
  readonly #options: ServerStopOptions;
  #isStopping = false;
  #answeredAtMs = -Infinity;
  readonly #inProgress = new Set<FastifyRequest>();

  constructor(options: ServerStopOptions) {
    this.#options = options;
  }

  /** Before routes are registered: a hook does not reach those that were there before it. */
  watch(app: ApiServer): void {
    app.addHook('onRequest', (request, reply, done) => {
      this.#inProgress.add(request);
      // Also where the caller goes away, in which case Fastify runs no hook of the answer.
      reply.raw.once('close', () => this.#inProgress.delete(request));
      done();
    });
    app.addHook('onSend', (_request, reply, _payload, done) => {
      this.#answeredAtMs = performance.now();
      if (this.#isStopping) void reply.header('connection', 'close');
      done();
    });
  }

  /** Resolves when everybody has been answered, or was waited for long enough and is cut. */
  async stop(app: ApiServer): Promise<void> {
    this.#isStopping = true;
    const startedAtMs = performance.now();
    // Not that of `http`, which closes what is idle.
    Server.prototype.close.call(app.server);
    const quietAtMs = () => Math.max(startedAtMs, this.#answeredAtMs) + QUIET_MS;
    while (performance.now() < Math.min(quietAtMs(), startedAtMs + LINGER_MS_MAX))
      await sleep(LOOK_INTERVAL_MS);
    // It ends live tails.
    const closed = app.close();
    while (
      this.#inProgress.size > 0 &&
      performance.now() < startedAtMs + this.#options.inProgressMsMax
    )
      await sleep(LOOK_INTERVAL_MS);
    app.server.closeAllConnections();
    await closed;
  }
}
