/**
 * `/readyz`: progress, not pulse. Not ready if the broker does not answer or may get no flush, if calls have waited
 * without a single flush getting through, if no flush has left the disk buffer for a while, or if the disk buffer is
 * half full. Calls are still taken then, until it is full: `/livez` decides whether calls are sent here, `/readyz`
 * whether to wake an operator.
 *
 * A broker that is `full` is not such a reason by itself. All intakes find that at the same moment. Their senders
 * do not notice it until a disk buffer is full, and workers that make progress free its memory. If they do not, no
 * flush leaves the disk buffer, which is a reason after ten seconds.
 */
import { AppError } from '@sluice/domain/values/errors';
import type { Producer } from '@sluice/platform/queue/queue';
import type { Readiness } from '@sluice/platform/telemetry/admin-server';
import type { Durability } from '@sluice/platform/redis/redis-durability';
import { within } from '@sluice/platform/process/within';
import type { Batcher } from './commit/batcher.ts';
import type { BatchCommitter } from './commit/batch-committer.ts';
import { JSON_TYPE, type Page } from './http/page.ts';
import type { DiskBuffer } from './commit/disk-buffer.ts';
import type { IntakeLease } from './commit/intake-lease.ts';

export interface HealthDependencies {
  readonly producer: Pick<Producer, 'durability' | 'durabilityRefusal' | 'fill'>;
  readonly batcher: Batcher;
  readonly diskBuffer: DiskBuffer;
  readonly lease: Pick<IntakeLease, 'stagedCount'>;
  readonly committer: BatchCommitter;
  /** Milliseconds that never go back: a clock that is set must not hide a standstill, nor look like one. */
  readonly monotonicNow: () => number;
}

const STUCK_AFTER_MS = 10_000;
const BROKER_ANSWER_MS_MAX = 2_000;
const DISK_BUFFER_FILL_MAX = 0.5;

export function createHealth({
  producer,
  batcher,
  diskBuffer,
  lease,
  committer,
  monotonicNow,
}: HealthDependencies): () => Promise<Readiness> {
  let lastFlushCount = -1;
  let lastProgressAtMs = monotonicNow();
  return async () => {
    // Calls that wait to be admitted wait for workers, not for a flush.
    const mayRest =
      batcher.pendingSizeBytes === 0 || (batcher.lineOperationCount > 0 && !batcher.isFlushing);
    if (batcher.flushCount !== lastFlushCount || mayRest) {
      lastFlushCount = batcher.flushCount;
      lastProgressAtMs = monotonicNow();
    }
    const movedAtMs = Math.min(lastProgressAtMs, committer.lastMovedAtMs);
    const isStuck = monotonicNow() - movedAtMs > STUCK_AFTER_MS;
    const [durability, fill] = await Promise.all([
      within(BROKER_ANSWER_MS_MAX, producer.durability()).catch(toldAsAway),
      within(BROKER_ANSWER_MS_MAX, producer.fill()).catch(() => undefined),
    ]);
    const isFull = fill?.isFull ?? false;
    // A disk buffer of size 0 takes no flush, so there every call is refused while the broker is full.
    const isFilling =
      (!diskBuffer.isEmpty || isFull) &&
      diskBuffer.sizeBytes >= DISK_BUFFER_FILL_MAX * diskBuffer.sizeBytesMax;
    const isAway = 'isAway' in durability;
    // One that is at fault since it came back, or since another server took its place.
    const refusal = producer.durabilityRefusal(durability);
    const isReady = !isAway && !refusal && !isStuck && !isFilling;
    return {
      isReady,
      details: {
        broker: refusal?.message ?? durability.description,
        broker_answers: !isAway,
        durable: durability.isSafe,
        full: isFull,
        memory_ratio: fill?.ratio ?? null,
        pending_bytes: batcher.pendingSizeBytes,
        stuck: isStuck,
        spill: {
          bytes: diskBuffer.sizeBytes,
          bytes_max: diskBuffer.sizeBytesMax,
          envelopes: diskBuffer.commitBatchCount,
          filling: isFilling,
        },
        staged_flushes: lease.stagedCount,
      },
    };
  };
}

/** @param showsDetails - false: a caller on the port that takes calls gets no more than that. */
export function readinessPage({ isReady, details }: Readiness, showsDetails: boolean): Page {
  return {
    status: isReady ? '200 OK' : '503 Service Unavailable',
    contentType: JSON_TYPE,
    body: `${JSON.stringify({ ready: isReady, ...(showsDetails && details) })}\n`,
  };
}

/** Shows the error only if an operator must act: other errors of a connection name addresses inside. */
function toldAsAway(error: unknown): Durability & { readonly isAway: true } {
  const isRefused = error instanceof AppError && error.code === 'BROKER_LOGIN_REFUSED';
  return {
    isAway: true,
    isSafe: false,
    isSaidUnsafe: false,
    description: isRefused ? error.message : 'does not answer',
  };
}
