/**
 * Memory of waiting work: bytes of one more queued event, blocked delivery or idle webhook. Each is the
 * slope between two sizes, so the constant part does not count. Each is compared with one job of a
 * library for the same (a BullMQ job on the same Redis, a graphile-worker job in the same Postgres).
 */
import { parseArgs } from 'node:util';
import { withDeliveryWorld } from './delivery-world.ts';
import { measureBlocked, measureQueued } from './memory-queued.ts';
import { measureIdleWebhooks } from './memory-webhooks.ts';
import type { Report } from './report.ts';

export async function benchMemory(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      events: { type: 'string', default: '10000,50000' },
      deliveries: { type: 'string', default: '10000,50000' },
      webhooks: { type: 'string', default: '1000,5000' },
    },
  });
  const sizes = (text: string) => text.split(',').map(Number);
  return withDeliveryWorld(async (world) => {
    const bytes: Record<string, number> = {
      ...(await measureQueued(world, sizes(values.events))),
      ...(await measureBlocked(world, sizes(values.deliveries))),
      ...(await measureIdleWebhooks(world, sizes(values.webhooks))),
    };
    const ratio = (ours: string, theirs: string) => (bytes[ours] ?? NaN) / (bytes[theirs] ?? NaN);
    return {
      bench: 'memory',
      ratios: {
        'queued event in Redis, full envelopes ours/bullmq': ratio(
          'queued event, Redis, full envelopes',
          'queued event, Redis, bullmq job',
        ),
        'queued event in Redis, alone ours/bullmq': ratio(
          'queued event, Redis, one an envelope',
          'queued event, Redis, bullmq job',
        ),
        'queued event in Postgres, full envelopes ours/graphile-worker': ratio(
          'queued event, Postgres, full envelopes',
          'queued event, Postgres, graphile-worker job',
        ),
        'queued event in Postgres, alone ours/graphile-worker': ratio(
          'queued event, Postgres, one an envelope',
          'queued event, Postgres, graphile-worker job',
        ),
        'held-back delivery in Redis ours/bullmq': ratio(
          'held-back delivery, Redis',
          'held-back delivery, Redis, bullmq job',
        ),
        'held-back delivery in Postgres ours/graphile-worker': ratio(
          'held-back delivery, Postgres',
          'held-back delivery, Postgres, graphile-worker job',
        ),
      },
      rates: {},
      latencyMs: {},
      details: {
        bytes,
        events: values.events,
        deliveries: values.deliveries,
        webhooks: values.webhooks,
      },
      versions: world.versions,
    };
  });
}
