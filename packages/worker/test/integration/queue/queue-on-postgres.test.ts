/** The queue on Postgres. Here because `platform`, whose it is, must not know `database`, which makes databases for tests. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { describe } from 'vitest';
import { testQueue } from '@sluice/platform/testing/queue-guarantees';

describe('the queue on postgres', () => {
  testQueue(
    () => Promise.resolve({ url: undefined, close: () => Promise.resolve() }),
    async () => (await createTestDatabase()).url,
  );
});
