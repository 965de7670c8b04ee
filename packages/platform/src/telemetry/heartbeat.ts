/**
 * Writes the state of a process every ten seconds. It is one small statement
 * (`database/src/maintenance/process-heartbeats.ts`). While Postgres is away the heartbeat is left out, and no work
 * waits for it.
 */
import { hostname } from 'node:os';
import type { Lifecycle } from '../process/lifecycle.ts';
import type { Logger } from '../process/logger.ts';
import { RELEASE_VERSION } from '../process/release.ts';
import { repeat } from '../process/repeat.ts';

const INTERVAL_MS = 10_000;

/** The writing process. */
export interface ProcessIdentity {
  readonly version: string;
  readonly host: string;
  readonly pid: number;
}

export function identityOfProcess(pid: number): ProcessIdentity {
  return { version: RELEASE_VERSION, host: hostname(), pid };
}

export interface HeartbeatOptions {
  readonly beat: () => Promise<void>;
  /** Of a process that ends in good order. */
  readonly leave: () => Promise<void>;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
  /** Ten seconds by default. */
  readonly intervalMs?: number;
}

/** Begins at once. Call it once the process does its work: it is ended first when the process stops. */
export function startHeartbeat({
  beat,
  leave,
  logger,
  lifecycle,
  intervalMs = INTERVAL_MS,
}: HeartbeatOptions): void {
  const beats = repeat('report that this process lives', intervalMs, logger, beat);
  lifecycle.defer('heartbeat', async () => {
    await beats.stop();
    // Readers see within a minute that it is gone.
    await leave().catch(() => undefined);
  });
}
