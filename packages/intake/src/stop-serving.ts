/**
 * The end of a process that takes calls, without a call that is refused or cut.
 *
 * New connections go to the other processes at once. Whoever has one here hears `Connection: close`
 * with its next answer and leaves; a process that just closed would cut what is on its way at that
 * moment. So it goes on answering until nothing has come for a while.
 *
 * Before: `main.ts`, on SIGTERM. After: `batcher.ts` has told everybody.
 */
import type { Server } from './server.ts';

const QUIET_MS = 300;
/** Of those that go on sending on a connection that they were asked to close. */
const LINGER_MS_MAX = 5_000;
const LOOK_INTERVAL_MS = 10;

export interface StopServingDependencies {
  readonly server: Server;
  /**
   * A body may come in for so long yet. Whoever lets theirs drip, with credentials or without, would else keep the
   * process until it is killed, and what comes after this in the end of a process would not come.
   */
  readonly bodiesMsMax: number;
  /** Resolves when every caller has been answered. */
  readonly drain: () => Promise<void>;
  readonly pause: (durationMs: number) => Promise<unknown>;
  readonly now: () => number;
}

/** Resolves when nobody whose body is whole waits for an answer; then the sockets are closed. */
export async function stopServing(dependencies: StopServingDependencies): Promise<void> {
  const { server, bodiesMsMax, drain, pause, now } = dependencies;
  server.stopListening();
  const startedAtMs = now();
  let receivedCount = server.receivedCount();
  let quietSinceMs = startedAtMs;
  const isQuiet = () => now() - quietSinceMs >= QUIET_MS || now() - startedAtMs >= LINGER_MS_MAX;
  const isWaitedFor = () => server.inFlightCount() > 0 && now() - startedAtMs < bodiesMsMax;
  while (isWaitedFor() || !isQuiet()) {
    await drain();
    await pause(LOOK_INTERVAL_MS);
    if (server.receivedCount() === receivedCount) continue;
    receivedCount = server.receivedCount();
    quietSinceMs = now();
  }
  await drain();
  server.close();
}
