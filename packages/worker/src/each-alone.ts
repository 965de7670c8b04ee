/**
 * Work on many things of several tenants, one after the other, of which none may keep the next from its turn: a
 * sweep that ended with the first failure would meet that one first again, and never come to those behind it.
 */
import { isDatabaseAway } from '@sluice/database/database-away';
import type { Logger } from '@sluice/platform/logger';

/**
 * A failure is logged with the item, which `work` must find again at a later run.
 *
 * @param items - of keys and kinds, which are safe to log.
 * @throws what Postgres being away throws: the others would fail by it too.
 */
export async function eachAlone<Item extends object>(
  logger: Logger,
  task: string,
  items: Iterable<Item>,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      if (isDatabaseAway(error)) throw error;
      logger.error({ error, task, item }, 'one could not be done and is tried again later');
    }
  }
}
