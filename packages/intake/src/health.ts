/**
 * `/readyz`: progress, not pulse. Not ready when the broker does not answer, or when calls have
 * waited for the broker without a single flush getting through.
 */
import type { Producer } from '@sluice/platform/queue';
import type { Batcher } from './batcher.ts';
import type { Page } from './server.ts';

export interface HealthDependencies {
  readonly producer: Producer;
  readonly batcher: Batcher;
  readonly now: () => number;
}

const STUCK_AFTER_MS = 10_000;
const BROKER_ANSWER_MS_MAX = 2_000;

export function createHealth({ producer, batcher, now }: HealthDependencies): () => Promise<Page> {
  let lastFlushCount = -1;
  let lastProgressAtMs = now();
  return async () => {
    if (batcher.flushCount !== lastFlushCount || batcher.pendingSizeBytes === 0) {
      lastFlushCount = batcher.flushCount;
      lastProgressAtMs = now();
    }
    const isStuck = now() - lastProgressAtMs > STUCK_AFTER_MS;
    const durability = await Promise.race([
      producer.durability().catch(() => undefined),
      new Promise<undefined>((resolve) =>
        setTimeout(resolve, BROKER_ANSWER_MS_MAX, undefined).unref(),
      ),
    ]);
    const isReady = durability !== undefined && !isStuck;
    return {
      status: isReady ? '200 OK' : '503 Service Unavailable',
      contentType: 'application/json; charset=utf-8',
      body: `${JSON.stringify({
        ready: isReady,
        broker: durability?.description ?? 'does not answer',
        durable: durability?.isSafe ?? false,
        pending_bytes: batcher.pendingSizeBytes,
        stuck: isStuck,
      })}\n`,
    };
  };
}
