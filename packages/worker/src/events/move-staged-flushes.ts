/** Moves staged flushes into the queues if no intake does: a fleet without intakes still applies their calls. */
import type { Producer } from '@sluice/platform/queue/queue';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';

/** Intakes do it within milliseconds. */
const INTERVAL_MS = 5_000;

export function moveStagedFlushes(
  producer: Pick<Producer, 'moveStaged'>,
  moverId: string,
  { logger, lifecycle }: { readonly logger: Logger; readonly lifecycle: Pick<Lifecycle, 'defer'> },
): void {
  const moving = repeat('move staged flushes', INTERVAL_MS, logger, () =>
    // Other code logs that the broker is away.
    producer.moveStaged(moverId).catch(() => 0),
  );
  lifecycle.defer('moving of staged flushes', () => moving.stop());
}
