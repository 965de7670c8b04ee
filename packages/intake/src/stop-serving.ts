/**
 * Ends a process that takes calls without refusing or cutting any.
 *
 * New connections go to the other processes at once. Clients with a connection here get `Connection: close` with
 * their next answer and leave. Closing at once would cut calls in progress, so the process goes on answering until
 * no call has come for a while.
 *
 * Before: `main.ts`, on SIGTERM. After: `batcher.ts` has answered every call.
 */

const LOOK_INTERVAL_MS = 10;
/** 300 ms. Looks rather than time: after a stall of the process, calls may wait in the kernel's buffers until the next look. */
const QUIET_LOOK_COUNT = 30;
/** How long clients are served that go on sending on a connection they were asked to close. */
const LINGER_MS_MAX = 5_000;

/** The part of a server that its stop needs; see `Server`. */
interface StoppableServer {
  stopListening(): void;
  close(): void;
  inFlightCount(): number;
  receivedCount(): number;
}

export interface StopServingDependencies {
  readonly server: StoppableServer;
  /**
   * How long bodies may still come in. Otherwise a client that sends slowly, with credentials or without, could keep
   * the process until it is killed, and the later steps of the stop would never run.
   */
  readonly bodiesMsMax: number;
  /** Resolves when every caller has been answered. */
  readonly drain: () => Promise<void>;
  readonly pause: (durationMs: number) => Promise<unknown>;
  /** One turn of the event loop, which reads the sockets: after a stall, timers run before it. */
  readonly turn: () => Promise<unknown>;
  readonly now: () => number;
}

/** Resolves once no complete call waits for its answer; then the sockets are closed. */
export async function stopServing(dependencies: StopServingDependencies): Promise<void> {
  const { server, bodiesMsMax, drain, pause, turn, now } = dependencies;
  server.stopListening();
  const startedAtMs = now();
  let receivedCount = server.receivedCount();
  let quietLookCount = 0;
  let hasLingered = false;
  const isQuiet = () => quietLookCount >= QUIET_LOOK_COUNT || hasLingered;
  const isWaitedFor = () => server.inFlightCount() > 0 && now() - startedAtMs < bodiesMsMax;
  while (isWaitedFor() || !isQuiet()) {
    await drain();
    // Before the look: a stall may pass the whole time, and the calls that came meanwhile are read by the look.
    hasLingered = now() - startedAtMs >= LINGER_MS_MAX;
    await pause(LOOK_INTERVAL_MS);
    await turn();
    quietLookCount = server.receivedCount() === receivedCount ? quietLookCount + 1 : 0;
    receivedCount = server.receivedCount();
  }
  await drain();
  server.close();
}
