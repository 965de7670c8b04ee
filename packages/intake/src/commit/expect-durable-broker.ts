/** What an acknowledgement is worth on the broker that intake starts with. */
import { reasonOf } from '@sluice/domain/values/errors';
import type { Logger } from '@sluice/platform/process/logger';
import type { Producer } from '@sluice/platform/queue/queue';

/**
 * Logs what a crash of the broker would lose. A broker that does not answer yet is looked at again before the first add.
 *
 * @throws AppError BROKER_UNDURABLE where the broker says that it loses what it confirms, and that is not allowed.
 */
export async function expectDurableBroker(
  producer: Pick<Producer, 'kind' | 'durability' | 'durabilityRefusal'>,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<void> {
  const durability = await producer.durability().catch((error: unknown) => ({
    isSafe: false,
    isSaidUnsafe: false,
    description: `the broker does not answer: ${reasonOf(error)}`,
  }));
  const refusal = producer.durabilityRefusal(durability);
  if (refusal) throw refusal;
  logger[durability.isSafe ? 'info' : 'warn']({ broker: producer.kind }, durability.description);
}
