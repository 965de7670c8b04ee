/** `GET /v1/deliveries`: deliveries of all webhooks of the workspace, newest first. */
import type { Database } from '@sluice/database/connection/connection';
import { listAttemptsOf, type TracedAttempt } from '@sluice/database/events/event-traces';
import { listRecentDeliveries } from '@sluice/database/events/recent-deliveries';
import { listWebhooks } from '@sluice/database/webhooks/webhooks';
import { WEBHOOK_COUNT_MAX } from '@sluice/domain/delivery/webhook';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { environmentOf, webhookScopeOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { badRequest, commonFailures } from '../http/fields.ts';
import { readsOf } from '../http/replica-reads.ts';
import { nextToken, pageQuery, readStart, writePageToken } from '../http/page.ts';
import { delivery, deliveryFilter, readDeliveryFilter, toWire } from './webhook-deliveries.ts';
import { webhookTags } from './webhook-route.ts';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
/** Deliveries examined for one page, of all webhooks together: about 50 ms. */
const SCAN_COUNT_MAX = 10_000;
/** A hundred webhooks with a place in the log of each. */
const START_LENGTH_MAX = 8_192;

const placeOf = (of: { readonly webhookId: number; readonly sequence: number }): string =>
  `${of.webhookId} ${of.sequence}`;

/** The endpoint's answers are in the list of one webhook: a hundred of these would be megabytes. */
const withoutAnswer = (attempt: TracedAttempt) => ({
  ...attempt,
  responseHead: null,
  responseBody: null,
});

/** Webhook and sequence in turn. */
const positions = z.array(z.int().min(1)).max(2 * WEBHOOK_COUNT_MAX);

export function registerWorkspaceDeliveries(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.get(
    '/v1/deliveries',
    {
      config: { mayLag: true },
      schema: {
        tags: webhookTags,
        summary: 'List the deliveries of all reporting webhooks',
        description: 'Newest first, without the answers of the endpoints.',
        querystring: z.strictObject({
          ...deliveryFilter,
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
          start: z.string().max(START_LENGTH_MAX).optional(),
        }),
        response: {
          200: z.object({
            deliveries: z.array(z.object({ webhook_id: z.int(), ...delivery.shape })),
            next: nextToken,
          }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const reads = readsOf(request, database);
      const { start, limit, ...given } = request.query;
      const before = new Map(pairsOf(readStart(start, positions) ?? []));
      const webhooks = await listWebhooks(reads, environmentId, webhookScopeOf(request));
      const wanted = await readDeliveryFilter(reads, environmentId, given);
      if (!wanted || webhooks.length === 0) return reply.send({ deliveries: [], next: '' });
      const isFiltered = Object.values(wanted).some((each) => each !== undefined);
      const from = webhooks.map(({ webhookId }) => ({
        webhookId,
        beforeSequence: before.get(webhookId) ?? Number.MAX_SAFE_INTEGER,
      }));
      const found = await listRecentDeliveries(reads, environmentId, from, wanted, {
        limit,
        // Without a filter the page is among the newest so many of each.
        scanLimit: isFiltered
          ? Math.max(limit, Math.ceil(SCAN_COUNT_MAX / webhooks.length))
          : limit,
      });
      const attempts = await listAttemptsOf(
        reads,
        environmentId,
        found.deliveries.filter((row) => row.attempts > 0),
      );
      const attemptsOf = Map.groupBy(attempts, placeOf);
      return reply.send({
        deliveries: found.deliveries.map((row) => ({
          webhook_id: row.webhookId,
          ...toWire(row, (attemptsOf.get(placeOf(row)) ?? []).map(withoutAnswer), false),
        })),
        next: found.next
          ? writePageToken(
              found.next.flatMap(({ webhookId, beforeSequence }) => [webhookId, beforeSequence]),
            )
          : '',
      });
    },
  );
}

function pairsOf(numbers: readonly number[]): [webhookId: number, sequence: number][] {
  const pairs: [number, number][] = [];
  for (let at = 0; at + 1 < numbers.length; at += 2) {
    const webhookId = numbers[at] as number;
    if (webhookId <= INTEGER_MAX) pairs.push([webhookId, numbers[at + 1] as number]);
  }
  return pairs;
}
