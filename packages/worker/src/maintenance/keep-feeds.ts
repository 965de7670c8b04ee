/**
 * Keeps feeds within their bounds (`database/src/feeds/feed-retention.ts`): 7 days or 10 GB a workspace, the less of
 * the two. A feed is measured as it grows, each event once.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  clearForgotten,
  forgetFeedChunks,
  listFeedKeys,
  measureFeedChunk,
} from '@sluice/database/feeds/feed-retention';
import type { Logger } from '@sluice/platform/process/logger';
import { eachAlone } from '../process/each-alone.ts';

export interface FeedBounds {
  readonly ageSecondsMax: number;
  /** Of all feeds of a workspace together. */
  readonly sizeBytesMax: number;
}

export const FEED_BOUNDS: FeedBounds = {
  ageSecondsMax: 7 * 86_400,
  sizeBytesMax: 10 * 1_024 ** 3,
};

/** A statement each: 10,000 events of 1 KB are read in 20 ms. */
const EVENTS_A_STEP = 10_000;
const STEPS_MAX = 1_000;

/** May be run by several workers at once. */
export async function keepFeeds(
  { database, logger }: { readonly database: Database; readonly logger: Logger },
  bounds: FeedBounds,
  isStopping: () => boolean = () => false,
): Promise<void> {
  const feeds = await listFeedKeys(database);
  const repeated = async (step: () => Promise<number>): Promise<void> => {
    for (let steps = 0; steps < STEPS_MAX && !isStopping(); steps++)
      if ((await step()) < EVENTS_A_STEP) return;
  };
  await eachAlone(logger, 'measure feeds', feeds, (feed) =>
    repeated(() =>
      database
        .transaction()
        .execute((transaction) => measureFeedChunk(transaction, feed, EVENTS_A_STEP)),
    ),
  );
  const workspaces = [...new Set(feeds.map(({ environmentId }) => environmentId))];
  await eachAlone(
    logger,
    'forget events of feeds',
    workspaces.map((environmentId) => ({ environmentId })),
    ({ environmentId }) => forgetFeedChunks(database, environmentId, bounds),
  );
  await eachAlone(logger, 'clear feeds', feeds, (feed) =>
    repeated(() => clearForgotten(database, feed, EVENTS_A_STEP)),
  );
}
