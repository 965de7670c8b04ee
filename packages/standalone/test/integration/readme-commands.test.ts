/** The processes as the README's commands start them, by hand: they begin to listen, and say nothing but their log. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/seed-demo';
import { createTestDatabase } from '@sluice/database/testing';
import { startServiceUnderTest } from '@sluice/platform/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const README = readFileSync(`${ROOT}README.md`, 'utf8');
const COMMANDS = [
  ...README.matchAll(/\bnode ((?:--\S+ )*)(packages\/([\w-]+)\/src\/main\.ts)/g),
].map(([, flags = '', file = '', service = '']) => ({
  service,
  file,
  flags: flags.split(' ').filter((flag) => flag !== ''),
}));

test('the README starts each process', () => {
  expect(COMMANDS.map(({ service }) => service)).toEqual([
    'intake',
    'worker',
    'api',
    'billing-vendor',
  ]);
});

test.each(COMMANDS)('$service, with $flags', async ({ service, file, flags }) => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const settings = {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '2',
    INTAKE_PORT: '0',
    WORKER_PORT: '0',
    API_PORT: '0',
    SIMULATOR_PORT: '0',
  };
  const started = await startServiceUnderTest(`${ROOT}${file}`, settings, flags);
  expect(await started.kill('SIGTERM'), service).toBe(0);
  // A warning of Node's own looks like a fault to whoever starts it for the first time.
  expect(started.logs.filter((line) => 'stderr' in line || 'text' in line)).toEqual([]);
});
