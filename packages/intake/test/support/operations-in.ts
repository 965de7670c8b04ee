/** What is in envelopes that intake has written, in order. */
import type { Envelope } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { envelopeText } from '@sluice/platform/queue/envelope-writer';
import type { ShardEnvelope } from '@sluice/platform/queue/queue';

export const operationsIn = (envelopes: readonly ShardEnvelope[]): Operation[] =>
  envelopes.flatMap(({ envelope }) => operationsOfText(envelopeText(envelope)));

export const operationsOfText = (envelope: string): Operation[] =>
  (JSON.parse(envelope) as Envelope).operations.map(unpackOperation);
