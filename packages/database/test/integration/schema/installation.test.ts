import { expect, inject, test } from 'vitest';
import { createDatabase } from '../../../src/connection/connection.ts';
import { agreeOnShardCount, joinInstallation } from '../../../src/schema/installation.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

test('the first process decides the number of shards, and one with another number does not start', async () => {
  const { database } = await createTestDatabase();
  await Promise.all([1, 2, 3].map(() => agreeOnShardCount(database, 4)));
  await expect(agreeOnShardCount(database, 16)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('made with 4'),
  });
  await expect(agreeOnShardCount(database, 4)).resolves.toBeUndefined();
});

test.each([
  // A server cannot listen on port 0.
  ['is away', () => 'postgres://sluice@127.0.0.1:0/sluice', /DATABASE_URL.*127\.0\.0\.1/],
  ['has no such database', () => nowhere(), /DATABASE_URL.*"nowhere" does not exist/],
])(
  'a process that starts while Postgres %s reports the setting to check',
  async (_, url, message) => {
    const database = createDatabase({
      url: url(),
      poolMax: 1,
      applicationName: 'started too early',
      onError: () => {},
    });
    await expect(joinInstallation(database, 4)).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringMatching(message),
    });
    await database.destroy();
  },
);

function nowhere(): string {
  const url = new URL(inject('testServerUrl'));
  url.pathname = '/nowhere';
  return url.href;
}
