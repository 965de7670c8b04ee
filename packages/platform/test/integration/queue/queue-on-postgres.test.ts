/** The queue on Postgres. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { describe } from 'vitest';
import { testQueue } from '../support/queue-guarantees.ts';

describe('the queue on postgres', () => {
  testQueue(
    () => Promise.resolve({ url: undefined, close: () => Promise.resolve() }),
    async () => (await createTestDatabase()).url,
  );
});
