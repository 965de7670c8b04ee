/** Opens the parts that make flushes durable: the disk buffer, the lease in the broker, the committer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '@sluice/domain/values/errors';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import type { Producer } from '@sluice/platform/queue/queue';
import { BatchCommitter } from './batch-committer.ts';
import type { DiskBuffer } from './disk-buffer.ts';
import { openDiskBuffer, type DiskBufferOptions } from './open-disk-buffer.ts';
import { IntakeLease } from './intake-lease.ts';

export interface CommitterOptions extends DiskBufferOptions {
  readonly producer: Producer;
  /** How long a call may wait for the broker. */
  readonly deadlineMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
}

/**
 * At the end of the process it drains for seconds, and the lease ends.
 *
 * @throws AppError as `openDiskBuffer`; BROKER_UNDURABLE if the broker can lose confirmed data by its own settings, and
 * that is not allowed.
 */
export async function openCommitter(options: CommitterOptions): Promise<{
  readonly committer: BatchCommitter;
  readonly diskBuffer: DiskBuffer;
  readonly lease: IntakeLease;
}> {
  const { producer, deadlineMs, now, monotonicNow, logger, lifecycle } = options;
  await expectDurableBroker(producer, logger);
  const diskBuffer = openDiskBuffer(options);
  const lease = new IntakeLease({
    stage: producer.stage,
    moveStaged: (moverId) => producer.moveStaged(moverId),
    diskBuffer,
    deadlineMs,
    monotonicNow,
    now,
    pause: (durationMs) => sleep(durationMs),
    logger,
  });
  await lease.start();
  const committer = new BatchCommitter({
    producer,
    diskBuffer,
    lease,
    now,
    monotonicNow,
    deadlineMs,
    pause: (durationMs, signal) => sleep(durationMs, undefined, { signal }).catch(() => undefined),
    logger,
  });
  lifecycle.defer('spill', async () => {
    await committer.stop();
    await lease.stop();
    diskBuffer.close();
  });
  return { committer, diskBuffer, lease };
}

/**
 * Logs the data that a crash of the broker would lose. A broker that does not answer yet is looked at again before the
 * first add.
 */
async function expectDurableBroker(
  producer: Pick<Producer, 'kind' | 'durability' | 'durabilityRefusal'>,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<void> {
  const durability = await producer.durability().catch((error: unknown) => ({
    isSafe: false,
    isSaidUnsafe: false,
    description: `the broker does not answer: ${reasonOf(error)}`,
  }));
  const refusal = producer.durabilityRefusal(durability);
  if (refusal) throw refusal;
  logger[durability.isSafe ? 'info' : 'warn']({ broker: producer.kind }, durability.description);
}
