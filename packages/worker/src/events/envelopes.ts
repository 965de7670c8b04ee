/**
 * What a worker process does with the envelopes that the queue brings: it has them applied, counts them, and wakes
 * the lanes that they logged for.
 *
 * The queue is `platform/src/consumers/queue-consumers.ts`, the applying `process-envelope.ts` (step 9 of the walk).
 */
import type { Database } from '@sluice/database/connection/connection';
import type { LoggedLane } from '@sluice/database/delivery/deliveries';
import type { NumberStock } from '@sluice/database/people/numbers';
import type { Envelope } from '@sluice/domain/operations/envelope';
import type { Logger } from '@sluice/platform/process/logger';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import { processEnvelope, type ProcessOutcome } from './process-envelope.ts';
import { TakenIdWatch } from './taken-id-watch.ts';

export type ProcessOne = (
  envelope: Envelope,
  behind: readonly Envelope[],
) => Promise<ProcessOutcome>;

export interface EnvelopesDeps {
  readonly database: Database;
  readonly numbers: NumberStock;
  readonly newId: () => string;
  /** Traces what it wraps. */
  readonly tracedProcessing: (process: ProcessOne) => ProcessOne;
  readonly wakeLogged: (lane: LoggedLane) => Promise<void>;
  readonly now: () => number;
  readonly logger: Logger;
}

export interface Envelopes {
  /** Since the start. */
  readonly counts: {
    readonly appliedCount: number;
    readonly operationCount: number;
    readonly parkedCount: number;
  };
  readonly processEnvelope: Processors['processEnvelope'];
}

export function createEnvelopes(deps: EnvelopesDeps): Envelopes {
  const { database, numbers, newId, tracedProcessing, wakeLogged, now, logger } = deps;
  const isDebugging = logger.isLevelEnabled('debug');
  const processing = { database, numbers, takenIds: new TakenIdWatch(), newId, now };
  const counts = { appliedCount: 0, operationCount: 0, parkedCount: 0 };
  const processOne = tracedProcessing((envelope, behind) =>
    processEnvelope(processing, envelope, behind),
  );
  return {
    counts,
    async processEnvelope(envelope, readBehind) {
      const result = await processOne(envelope, await readBehind());
      if (result.outcome === 'already-applied') return { outcome: 'done' };
      counts.appliedCount += result.envelopes;
      if (isDebugging) logger.debug({ envelopeId: envelope.id, ...result.counts }, 'applied');
      counts.operationCount += result.operations;
      if (result.counts.parked > 0) {
        counts.parkedCount += result.counts.parked;
        logger.error(
          { envelopeId: envelope.id, parked: result.counts.parked },
          'operations could not be applied and are parked: npm run parked',
        );
      }
      // A wake-up that is lost here is made good by the sweep.
      await Promise.all(result.lanes.map(wakeLogged)).catch((error: unknown) => {
        logger.warn({ error }, 'lanes could not be woken; the sweep will find them');
      });
      return { outcome: 'done', behind: result.envelopes - 1 };
    },
  };
}
