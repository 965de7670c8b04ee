/**
 * Log of the connections that intake cuts.
 *
 * One line for all cuts of ten seconds: a hostile sender opens a new connection after each cut.
 */
import type { Logger } from '@sluice/platform/process/logger';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import { repeat } from '@sluice/platform/process/repeat';
import { CutConnections } from './cut-connections.ts';

const INTERVAL_MS = 10_000;

/** The cuts of a process, with their log. */
export function openCuts(
  logger: Logger,
  lifecycle: Pick<Lifecycle, 'defer'>,
): { readonly cuts: CutConnections; readonly log: ReturnType<typeof repeat> } {
  const cuts = new CutConnections();
  const log = repeat('log cut connections', INTERVAL_MS, logger, () => {
    const summary = cuts.takeSummary();
    if (summary !== undefined)
      logger.warn(
        {
          cutCount: summary.count,
          countsByReason: summary.countsByReason,
          ...summary.last,
        },
        'intake cut connections without an answer. The fields describe the last one; find its sender by address, and see docs/operations/proxy.md for the bounds',
      );
    return Promise.resolve();
  });
  lifecycle.defer('log of cut connections', () => log.stop());
  return { cuts, log };
}
