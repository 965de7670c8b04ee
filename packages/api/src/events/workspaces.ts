/** The workspace behind the key. Also the source addresses of its webhooks. */
import type { Database } from '@sluice/database/connection/connection';
import { type WorkspaceTotals, findWorkspaceTotals } from '@sluice/database/accounts/environments';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import { commonFailures } from '../http/fields.ts';
import { RecentAnswers } from '../auth/recent-answers.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface WorkspaceEffects {
  readonly database: Database;
  /** Source addresses of deliveries, for a receiver's firewall; only the operator knows them. */
  readonly outgoingIpAddresses: readonly string[];
  readonly monotonicNow: () => number;
}

/** How often each is counted: counting takes up to seconds in a large workspace. */
const TOTALS_TTL_MS = 10_000;
const TOTALS_COUNT_MAX = 1_000;

const workspace = z
  .object({
    id: z.int(),
    name: z.string(),
    people: z.int(),
    object_types: z.int(),
    objects: z.int(),
    messages_sent: z
      .int()
      .meta({ description: 'Always 0: this service reports on messages and does not send them.' }),
    billable_messages_sent: z.int().meta({ description: 'Always 0.' }),
  })
  .meta({
    id: 'Workspace',
    description: 'A workspace (environment) with its counts, at most 10 s old.',
  });

export function registerWorkspaces(
  app: ApiServer,
  { database, monotonicNow, outgoingIpAddresses }: WorkspaceEffects,
): void {
  const recentTotals = new RecentAnswers<WorkspaceTotals>({
    ttlMs: TOTALS_TTL_MS,
    countMax: TOTALS_COUNT_MAX,
    monotonicNow,
  });

  app.get(
    '/v1/workspaces',
    {
      schema: {
        tags: ['workspaces'],
        summary: 'The workspace of your key',
        description: 'A key opens one workspace, so the list has one entry.',
        response: { 200: z.object({ workspaces: z.array(workspace) }), ...commonFailures },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const totals = await recentTotals.get(String(environmentId), () =>
        findWorkspaceTotals(database, environmentId),
      );
      return reply.send({ workspaces: totals ? [toWire(totals)] : [] });
    },
  );

  app.get(
    '/v1/info/ip_addresses',
    {
      schema: {
        tags: ['workspaces'],
        summary: 'The addresses that webhook deliveries come from',
        description: 'As the operator has set them; empty when they are not fixed.',
        response: { 200: z.object({ ip_addresses: z.array(z.string()) }), ...commonFailures },
      },
    },
    async (_request, reply) => reply.send({ ip_addresses: [...outgoingIpAddresses] }),
  );
}

const toWire = (totals: WorkspaceTotals): z.infer<typeof workspace> => ({
  id: totals.environmentId,
  name: totals.name,
  people: Number(totals.people),
  object_types: Number(totals.objectTypes),
  objects: Number(totals.objects),
  messages_sent: 0,
  billable_messages_sent: 0,
});
