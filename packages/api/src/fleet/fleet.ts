/**
 * `GET /v1/fleet`: is the installation well, and what is behind? For its operator, with the scope `fleet:read`, which no
 * role gives; in the console for the admins of the operator's own accounts (`OPERATOR_ACCOUNT_IDS`).
 */
import type { UnknownKeys } from '@sluice/database/events/ingestion-issue-reads';
import type { Heartbeat } from '@sluice/database/maintenance/process-heartbeats';
import { z } from 'zod';
import type { ApiServer } from '../http/api-server.ts';
import { commonFailures, forbidden, instant } from '../http/fields.ts';
import { alertsOf } from './fleet-alerts.ts';
import { createFleetReader, type FleetReaderEffects, type LaneAges } from './read-fleet.ts';

const ageMs = z.int().nullable();

const fleetProcess = z.object({
  id: z.string(),
  service: z.enum(['intake', 'worker', 'api']),
  version: z.string(),
  host: z.string(),
  pid: z.int(),
  started_at: instant,
  beat_age_ms: z.int().meta({
    description: 'A process reports every 10 s; after a minute without a report it is left out.',
  }),
  clock_ahead_ms: z
    .int()
    .nullable()
    .meta({ description: 'Lead over the clock of Postgres; null if it is not measured.' }),
  broker_answers: z.boolean().nullable().meta({ description: 'Null: it does not look.' }),
  stuck_queues: z.array(z.string()),
  /** The local disk buffer of an intake. */
  spill: z
    .object({
      size_bytes: z.int(),
      size_bytes_max: z.int(),
      commit_batches: z.int(),
      oldest_age_ms: z.int(),
    })
    .nullable(),
});

const laneAges = z.object({ webhooks: z.int(), deliveries: z.int(), oldest_age_ms: ageMs });

const unknownKeys = z
  .object({
    count: z.int(),
    first_at: instant.nullable(),
    last_at: instant.nullable(),
    latest: z.array(
      z.object({
        source: z
          .string()
          .meta({ description: 'Kind of call: `pipelines.track`, `track.v1.event`, …' }),
        hint: z.string().nullable().meta({
          description: 'Last characters of the last key, or site id; null if no call had one.',
        }),
        count: z.int(),
        last_at: instant,
      }),
    ),
  })
  .meta({
    description:
      'Calls whose credentials name no workspace, of the kinds of call that came in the last 24 hours. They are counted by day in UTC, so the counts begin at `first_at`, at most 48 hours ago. `latest` has at most five kinds, newest first.',
  });

const fleet = z.object({
  read_at: instant,
  alerts: z.array(
    z.object({
      name: z.string(),
      summary: z.string(),
      runbook: z.string().meta({ description: 'A file of the repository.' }),
    }),
  ),
  processes: z.array(fleetProcess),
  /** Null: it does not answer, and the state of the shards is not known. */
  broker: z
    .object({
      kind: z.enum(['redis', 'postgres']),
      description: z.string(),
      durable: z.boolean(),
      full: z.boolean(),
      memory_ratio: z.number(),
      failed_commit_batches: z.int(),
    })
    .nullable(),
  shards: z
    .array(
      z.object({
        shard: z.int(),
        /** Commit batches that wait or run. */
        waiting: z.int(),
        oldest_age_ms: ageMs,
        stuck: z.boolean(),
      }),
    )
    .nullable(),
  lanes: z.object({ healthy: laneAges, failing: laneAges }),
  /** At most 1,000 are counted, of the next too. */
  parked_operations: z.int(),
  set_aside_purchases: z.int(),
  provider_event_oldest_age_ms: ageMs,
  outbox_oldest_age_ms: ageMs,
  unknown_keys: unknownKeys.nullable().meta({ description: 'Null: they cannot be read.' }),
});

/** On a scope that `guardAccounts` was called on. */
export function registerFleet(scope: ApiServer, effects: FleetReaderEffects): void {
  const readFleet = createFleetReader(effects);
  scope.get(
    '/v1/fleet',
    {
      config: { access: { role: 'member', scope: 'fleet:read' } },
      schema: {
        tags: ['fleet'],
        summary: 'The state of the installation',
        response: { 200: fleet, ...forbidden, ...commonFailures },
      },
    },
    async (_request, reply) => {
      const reading = await readFleet();
      const { broker, shards, lanes } = reading;
      return reply.send({
        read_at: new Date(reading.readAtMs).toISOString(),
        alerts: alertsOf(reading).map((alert) => ({ ...alert })),
        processes: reading.processes.map(processToWire),
        broker: broker
          ? {
              kind: broker.kind,
              description: broker.description,
              durable: broker.isDurable,
              full: broker.isFull,
              memory_ratio: broker.memoryRatio,
              failed_commit_batches: broker.failedCount,
            }
          : null,
        shards:
          shards?.map(({ shard, waitingCount, oldestAgeMs, isStuck }) => ({
            shard,
            waiting: waitingCount,
            oldest_age_ms: whole(oldestAgeMs),
            stuck: isStuck,
          })) ?? null,
        lanes: { healthy: lanesToWire(lanes.healthy), failing: lanesToWire(lanes.failing) },
        parked_operations: reading.parkedOperationCount,
        set_aside_purchases: reading.setAsidePurchaseCount,
        provider_event_oldest_age_ms: whole(reading.providerEventOldestAgeMs),
        outbox_oldest_age_ms: whole(reading.outboxOldestAgeMs),
        unknown_keys: reading.unknownKeys ? unknownKeysToWire(reading.unknownKeys) : null,
      });
    },
  );
}

const whole = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));

const lanesToWire = ({ webhookCount, deliveryCount, oldestAgeMs }: LaneAges) => ({
  webhooks: webhookCount,
  deliveries: deliveryCount,
  oldest_age_ms: whole(oldestAgeMs),
});

const unknownKeysToWire = ({
  count,
  firstAt,
  lastAt,
  latest,
}: UnknownKeys): z.infer<typeof unknownKeys> => ({
  count,
  first_at: firstAt?.toISOString() ?? null,
  last_at: lastAt?.toISOString() ?? null,
  latest: latest.map((each) => ({
    source: each.source,
    hint: each.hint,
    count: each.count,
    last_at: each.lastAt.toISOString(),
  })),
});

const processToWire = ({ report, ...row }: Heartbeat): z.infer<typeof fleetProcess> => ({
  id: row.processId,
  service: row.service,
  version: row.version,
  host: row.host,
  pid: row.pid,
  started_at: row.startedAt.toISOString(),
  beat_age_ms: row.beatAgeMs,
  clock_ahead_ms: whole(report.clockAheadMs),
  broker_answers: report.isBrokerAnswering ?? null,
  stuck_queues: [...(report.stuckQueues ?? [])],
  spill: report.spill
    ? {
        size_bytes: report.spill.sizeBytes,
        size_bytes_max: report.spill.sizeBytesMax,
        commit_batches: report.spill.commitBatchCount,
        oldest_age_ms: Math.round(report.spill.oldestAgeMs),
      }
    : null,
});
