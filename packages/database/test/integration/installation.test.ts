import { expect, test } from 'vitest';
import { agreeOnShardCount } from '../../src/installation.ts';
import { createTestDatabase } from '../../src/testing.ts';

test('the first process decides the number of shards, and one with another number does not start', async () => {
  const { database } = await createTestDatabase();
  await Promise.all([1, 2, 3].map(() => agreeOnShardCount(database, 4)));
  await expect(agreeOnShardCount(database, 16)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('made with 4'),
  });
  await expect(agreeOnShardCount(database, 4)).resolves.toBeUndefined();
});
