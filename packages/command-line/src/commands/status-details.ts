/** Details of `sluice status` beyond the figures of the processes. The present keys decide which ones can be read. */
import { type ApiClient, resultOf } from '@sluice/client';
import { laneSentence, type LaneState } from '@sluice/console/sentences/lane-sentence';
import { AppError } from '@sluice/domain/values/errors';
import { printable } from '@sluice/domain/values/printable';
import { writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

export interface FleetDetails {
  /** Of the workspace of `--key`: the webhooks whose first delivery fails. */
  readonly failing_webhooks?: readonly FailingWebhook[];
  /** With a token of the operator's scope `fleet:read`. */
  readonly shards?: readonly Shard[];
}

interface FailingWebhook {
  readonly id: number;
  readonly name: string;
  readonly state: LaneState;
}

interface Shard {
  readonly shard: number;
  readonly waiting: number;
  readonly oldest_age_ms: number | null;
  readonly stuck: boolean;
}

/** A key that is not in force, and an API that is away, are no failure of the status: it shows fewer details. */
export async function readDetails(api: ApiClient, accountApi: ApiClient): Promise<FleetDetails> {
  const [listed, fleet] = await Promise.all([
    ifAllowed(
      resultOf(api.GET('/v1/reporting_webhooks', { params: { query: { include: 'state' } } })),
    ),
    ifAllowed(resultOf(accountApi.GET('/v1/fleet'))),
  ]);
  return {
    ...(listed && {
      failing_webhooks: listed.reporting_webhooks.flatMap(({ id, name, state }) =>
        state?.state === 'failing' ? [{ id, name, state }] : [],
      ),
    }),
    ...(fleet?.shards && { shards: fleet.shards }),
  };
}

const ifAllowed = <Read>(read: Promise<Read>): Promise<Read | undefined> =>
  read.catch((error: unknown) => {
    if (error instanceof AppError) return undefined;
    throw error;
  });

/** A skip names the delivery, so that another one is not skipped. */
const skipAdvice = (id: number, head: LaneState['head']): string =>
  head ? `, or webhooks skip ${id} --sequence ${head.sequence}` : '';

export function writeDetails(terminal: Terminal, details: FleetDetails): void {
  const nowMs = terminal.now();
  for (const { id, name, state } of details.failing_webhooks ?? []) {
    terminal.line('');
    terminal.line(`webhook ${id}, ${printable(name)}: ${laneSentence(state, nowMs).text}`);
    terminal.line(
      `  sluice webhooks show ${id}; then webhooks probe ${id}${skipAdvice(id, state.head)}`,
    );
  }
  if (!details.shards) return;
  const busy = details.shards.filter(({ waiting, stuck }) => waiting > 0 || stuck);
  terminal.line('');
  writeRows(
    { ...terminal, columns: undefined },
    busy.map((shard) => ({ ...shard, stuck: shard.stuck ? 'yes' : 'no' })),
    ['shard', 'waiting', 'oldest_age_ms', 'stuck'],
    `no work waits in any of the ${details.shards.length} shards`,
  );
}
