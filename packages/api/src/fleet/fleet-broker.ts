/**
 * The broker as a look at the fleet needs it. The API adds no commit batches and knows no shards, so this is opened at the first
 * look, with the number of shards that the installation was made with.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findShardCount } from '@sluice/database/schema/installation';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import { openProducer } from '@sluice/platform/queue/queue';
import type { FleetBroker } from './read-fleet.ts';

export interface FleetBrokerOptions {
  readonly database: Database;
  readonly broker: Omit<Parameters<typeof openProducer>[0], 'shardCount'>;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
}

/** A connection that fails to open is opened anew at the next look. */
export function createFleetBroker(options: FleetBrokerOptions): () => Promise<FleetBroker> {
  let opening: Promise<FleetBroker> | undefined;
  return () => {
    opening ??= open(options);
    opening.catch(() => (opening = undefined));
    return opening;
  };
}

async function open({ database, broker, lifecycle }: FleetBrokerOptions): Promise<FleetBroker> {
  const shardCount = await findShardCount(database);
  if (shardCount === undefined) throw new Error('no intake and no worker has started here yet');
  const producer = await openProducer({ ...broker, shardCount });
  lifecycle.defer('broker of the fleet', () => producer.close());
  return producer;
}
