/**
 * Works on many items of several tenants, one after the other; a failing item does not keep the next from its turn. A
 * reconcile loop that ended at the first failure would meet it first again, and never reach the items behind it.
 */
import type { ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import { isDatabaseAway } from '@sluice/database/connection/database-away';
import type { Logger } from '@sluice/platform/process/logger';

/**
 * A failure is logged with the item, which `work` must find again at a later run.
 *
 * @param items - of keys and kinds, which are safe to log.
 * @param isOver - asked before each item: the rest is left to a later run.
 * @throws the error of an absent Postgres, since the other items would fail too.
 */
export async function eachAlone<Item extends object>(
  logger: Logger,
  task: string,
  items: Iterable<Item>,
  work: (item: Item) => Promise<unknown>,
  isOver: () => boolean = () => false,
): Promise<void> {
  for (const item of items) {
    if (isOver()) return;
    try {
      await work(item);
    } catch (error) {
      if (isDatabaseAway(error)) throw error;
      logger.error(
        { error, task, item },
        'an item of a task failed; the next round tries it again',
      );
    }
  }
}

/**
 * As {@link eachAlone}, for items about each of which the payment provider is asked. If it refuses or does not answer,
 * that is logged. If it does not answer the rest is left to a later run, since it would not answer for the next one
 * either.
 *
 * @param ask - the last answer of the payment provider.
 * @param isStopping - asked before each item.
 */
export async function eachAsked<Item extends object>(
  logger: Logger,
  task: string,
  items: Iterable<Item>,
  ask: (item: Item) => Promise<ProviderResult<unknown>['outcome']>,
  isStopping: () => boolean,
): Promise<void> {
  let isAnswered = true;
  await eachAlone(
    logger,
    task,
    items,
    async (item) => {
      const outcome = await ask(item);
      isAnswered = outcome !== 'unknown';
      if (outcome !== 'ok') throw new Error(`the payment provider answered: ${outcome}`);
    },
    () => isStopping() || !isAnswered,
  );
}
