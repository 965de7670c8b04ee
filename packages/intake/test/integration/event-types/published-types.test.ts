/** An intake checks published messages against the schemas of their workspace. */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  archiveEventType,
  deleteEventType,
  putEventType,
} from '@sluice/database/webhooks/event-type-changes';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const ORIGIN = { actor: { type: 'system' } } as const;

test('a schema holds from when intake has read it, for its workspace, until it is deleted; an archived type is refused', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const put = (schema: string | null) =>
    putEventType(database, 1, 'order.paid', { description: '', schema }, ORIGIN, 0);
  await put('{"required":["total"]}');
  const intake = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    INTAKE_PORT: '0',
    INTAKE_KEYS_REFRESH_MS: '20',
  });
  const publish = async (payload: object) => {
    const answer = await fetch(`${intake.url}/v1/publish`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(`${DEMO.siteId}:${DEMO.apiKey}`).toString('base64')}`,
      },
      body: JSON.stringify({
        messages: [
          { event_type: 'order.paid', payload },
          { event_type: 'order.sent', payload },
        ],
      }),
    });
    const { results } = (await answer.json()) as {
      results: { status: string; errors?: { pointer?: string }[] }[];
    };
    return [results[0]?.status, results[0]?.errors?.[0]?.pointer];
  };
  // Before its first call: a process that has just started knows the schemas.
  expect(await publish({})).toEqual(['refused', '/payload/total']);
  expect(await publish({ total: 1 })).toEqual(['accepted', undefined]);
  await put('{"required":["sum"]}');
  await vi.waitFor(
    async () => expect(await publish({ total: 1 })).toEqual(['refused', '/payload/sum']),
    { timeout: 20_000 },
  );
  await archiveEventType(database, 1, 'order.paid', ORIGIN, 0);
  await vi.waitFor(
    async () => expect(await publish({ sum: 1 })).toEqual(['refused', '/event_type']),
    { timeout: 20_000 },
  );
  await put('{"required":["sum"]}');
  await vi.waitFor(async () => expect(await publish({ sum: 1 })).toEqual(['accepted', undefined]), {
    timeout: 20_000,
  });
  await deleteEventType(database, 1, 'order.paid', ORIGIN, 0);
  await vi.waitFor(async () => expect(await publish({})).toEqual(['accepted', undefined]), {
    timeout: 20_000,
  });
  await intake.kill('SIGTERM');
});
