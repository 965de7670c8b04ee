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

const startIntake = (databaseUrl: string) =>
  startServiceUnderTest(MAIN, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    INTAKE_PORT: '0',
    INTAKE_KEYS_REFRESH_MS: '20',
  });

interface Published {
  readonly status: number;
  readonly results: readonly {
    readonly status: string;
    readonly errors?: readonly { readonly pointer?: string }[];
  }[];
}

async function publishTo(intakeUrl: string, messages: readonly object[]): Promise<Published> {
  const answer = await fetch(`${intakeUrl}/v1/publish`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(`${DEMO.siteId}:${DEMO.apiKey}`).toString('base64')}`,
    },
    body: JSON.stringify({ messages }),
  });
  const { results } = (await answer.json()) as Pick<Published, 'results'>;
  return { status: answer.status, results };
}

test('a schema holds from when intake has read it, for its workspace, until it is deleted; an archived type is refused', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const put = (schema: string | null) =>
    putEventType(database, 1, 'order.paid', { description: '', schema }, ORIGIN, 0);
  await put('{"required":["total"]}');
  const intake = await startIntake(url);
  const publish = async (payload: object) => {
    const { results } = await publishTo(intake.url, [
      { event_type: 'order.paid', payload },
      { event_type: 'order.sent', payload },
    ]);
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

test('a call of 1,000 messages is held to one version, though the schema changes meanwhile', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const requireField = (name: string) =>
    putEventType(
      database,
      1,
      'order.paid',
      { description: '', schema: JSON.stringify({ required: [name] }) },
      ORIGIN,
      0,
    );
  await requireField('a');
  const intake = await startIntake(url);
  // The last one fits neither version.
  const messages = Array.from({ length: 1_000 }, (_, place) => ({
    event_type: 'order.paid',
    payload: place === 999 ? {} : { [place % 2 === 0 ? 'a' : 'b']: place },
  }));
  const seen = new Set<string>();
  const look = async (): Promise<void> => {
    const { status, results } = await publishTo(intake.url, messages);
    expect(status).toBe(207);
    const taken = (place: number) => results[place]?.status;
    const [even, odd] = [taken(0), taken(1)];
    expect(new Set([even, odd])).toEqual(new Set(['accepted', 'refused']));
    expect(results.map((result) => result.status)).toEqual(
      messages.map((_, place) => (place === 999 ? 'refused' : place % 2 === 0 ? even : odd)),
    );
    seen.add(even === 'accepted' ? 'a' : 'b');
  };
  for (const name of ['b', 'a', 'b', 'a']) {
    const change = requireField(name);
    seen.clear();
    while (!seen.has(name)) await look();
    await change;
  }
  await intake.kill('SIGTERM');
}, 240_000);
