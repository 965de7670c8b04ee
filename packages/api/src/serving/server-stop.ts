/**
 * Ends a process that answers calls, without cutting a call.
 *
 * New connections are not taken. Each open connection gets `Connection: close` with the next answer and then leaves;
 * closed at once, it would be closed on a call that is on its way. So calls go on being answered until a while has
 * passed without any. Then calls in progress are waited for, and connections without a call are cut: a browser keeps
 * connections on which it has not sent a request yet. As intake does (`intake/src/stop-serving.ts`).
 */
import { Server } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import type { ApiServer } from '../http/api-server.ts';

const LOOK_INTERVAL_MS = 10;
/** 300 ms. Looks rather than time: after a stall of the process, calls may wait in the kernel's buffers until the next look. */
const QUIET_LOOK_COUNT = 30;
/** For clients that go on sending on a connection that they were asked to close. */
const LINGER_MS_MAX = 5_000;

export interface ServerStopOptions {
  /** How long calls in progress are waited for: a body may come slowly, and a reader may stop reading. */
  readonly inProgressMsMax: number;
  /** Both are of the process, except in tests. */
  readonly pause?: (durationMs: number) => Promise<unknown>;
  readonly now?: () => number;
}

export class ServerStop {
  readonly #options: ServerStopOptions;
  #isStopping = false;
  #answeredCount = 0;
  readonly #inProgress = new Set<FastifyRequest>();

  constructor(options: ServerStopOptions) {
    this.#options = options;
  }

  /** Before routes are registered: a hook does not reach routes that were registered before it. */
  watch(app: ApiServer): void {
    app.addHook('onRequest', (request, reply, done) => {
      this.#inProgress.add(request);
      // Also if the caller goes away, in which case Fastify runs no hook of the answer.
      reply.raw.once('close', () => this.#inProgress.delete(request));
      done();
    });
    app.addHook('onSend', (_request, reply, _payload, done) => {
      this.#answeredCount++;
      if (this.#isStopping) void reply.header('connection', 'close');
      done();
    });
  }

  /** Resolves when everybody has been answered, or was waited for long enough and is cut. */
  async stop(app: ApiServer): Promise<void> {
    const { inProgressMsMax, pause = sleep, now = () => performance.now() } = this.#options;
    this.#isStopping = true;
    const startedAtMs = now();
    // Not the method of `http`, which closes idle connections.
    Server.prototype.close.call(app.server);
    let quietLookCount = 0;
    let hasLingered = false;
    while (quietLookCount < QUIET_LOOK_COUNT && !hasLingered) {
      const answeredCount = this.#answeredCount;
      // Before the look: a stall may pass the whole time, and the calls that came meanwhile are read by the look.
      hasLingered = now() >= startedAtMs + LINGER_MS_MAX;
      await pause(LOOK_INTERVAL_MS);
      // It reads the sockets: after a stall, timers run before it.
      await nextTurn();
      quietLookCount = this.#answeredCount === answeredCount ? quietLookCount + 1 : 0;
    }
    // It ends live tails.
    const closed = app.close();
    while (this.#inProgress.size > 0 && now() < startedAtMs + inProgressMsMax)
      await pause(LOOK_INTERVAL_MS);
    app.server.closeAllConnections();
    await closed;
  }
}
