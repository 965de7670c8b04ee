/** What is in envelopes that intake has written, in order. */
import type { Envelope, Operation } from '@sluice/domain/operation';
import { envelopeText } from '@sluice/platform/envelope-writer';
import type { ShardEnvelope } from '@sluice/platform/queue';

export const operationsIn = (envelopes: readonly ShardEnvelope[]): Operation[] =>
  envelopes.flatMap(({ envelope }) => (JSON.parse(envelopeText(envelope)) as Envelope).operations);
