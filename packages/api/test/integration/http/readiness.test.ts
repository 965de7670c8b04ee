import { createDatabase } from '@sluice/database/connection/connection';
import { isDatabaseAnswering } from '@sluice/database/connection/database-away';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { expect, onTestFinished, test } from 'vitest';

const TO_BE_LATE_MS = 100;
const IN_TIME_MS = 20_000;

// TCP goes on sending for a quarter of an hour, and such a probe used to keep its place in the pool for as long.
test('a probe that Postgres never answers leaves its place in the pool, and the next one finds the new way', async () => {
  const { url } = await createTestDatabase();
  const proxy = await startTcpProxyTo(url);
  onTestFinished(() => proxy.close());
  const database = createDatabase({
    url: proxy.url,
    poolMax: 1,
    applicationName: 'probe',
    onError: () => undefined,
  });
  onTestFinished(() => database.destroy());

  expect(await isDatabaseAnswering(database, IN_TIME_MS)).toBe(true);
  proxy.hold();
  expect(await isDatabaseAnswering(database, TO_BE_LATE_MS)).toBe(false);
  proxy.forget();
  expect(await isDatabaseAnswering(database, IN_TIME_MS)).toBe(true);
});
