/**
 * Ranges of neighbouring delivery queues, which one wake-up wakes together.
 *
 * A wake-up by itself costs a job. If 10,000 webhooks get a few deliveries each, their jobs cost more than the
 * deliveries (`npm run bench -- deliver --webhooks 10000`). A range belongs to one workspace, and its number follows
 * from the number of the webhook. So a range that is woken twice is one job, like a queue that is woken twice.
 *
 * The search of a range reads all of its queues, so few queues of a range are woken one by one. A workspace with few
 * queues thus never waits behind the ranges of another.
 */
import type { LaneKey } from './lane-key.ts';

/** Delivery queues of one workspace whose webhooks have neighbouring numbers. */
export interface LaneRange {
  readonly environmentId: number;
  /** Inclusive. */
  readonly firstWebhookId: number;
  /** Inclusive. */
  readonly lastWebhookId: number;
}

/** Width of a range: bounds the rows that one search reads and locks. */
export const LANES_A_RANGE = 256;
/** Fewer queues of one range are woken one by one. */
export const WOKEN_TOGETHER_MIN = 16;

export interface WakeUps {
  readonly ranges: readonly LaneRange[];
  /** Queues that are woken one by one. */
  readonly alone: readonly LaneKey[];
}

/** The wake-ups of delivery queues, each named once or more, in their order. */
export function wakeUpsOf(lanes: readonly LaneKey[]): WakeUps {
  if (lanes.length < WOKEN_TOGETHER_MIN) return { ranges: [], alone: lanes };
  const byRange = Map.groupBy(
    lanes,
    ({ environmentId, webhookId }) => `${environmentId}/${Math.floor(webhookId / LANES_A_RANGE)}`,
  );
  const ranges: LaneRange[] = [];
  const alone: LaneKey[] = [];
  for (const members of byRange.values()) {
    const [first] = members;
    const count = new Set(members.map(({ webhookId }) => webhookId)).size;
    if (first && count >= WOKEN_TOGETHER_MIN) ranges.push(rangeOf(first));
    else alone.push(...members);
  }
  return { ranges, alone };
}

/** The range of a delivery queue. */
export function rangeOf({ environmentId, webhookId }: LaneKey): LaneRange {
  const firstWebhookId = webhookId - (webhookId % LANES_A_RANGE);
  return { environmentId, firstWebhookId, lastWebhookId: firstWebhookId + LANES_A_RANGE - 1 };
}
