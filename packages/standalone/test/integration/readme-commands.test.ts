/**
 * Processes started by hand with the commands of the deployment page.
 *
 * They begin to listen, and write only their log.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};
const named = readFileSync(`${ROOT}docs/operations/deploy.md`, 'utf8').matchAll(
  /\bnpm run ([\w-]+)/g,
);
/** Commands that are a process of their own. */
const COMMANDS = [...new Set([...named].map(([, name = '']) => name))].flatMap((name) => {
  const command =
    /^node scripts\/install\.mjs && (?:[A-Z_]+=\S+ )*exec node_modules\/\.bin\/node ((?:--\S+ )*)(packages\/(?!standalone)\S+)$/.exec(
      scripts[name] ?? '',
    );
  const [, flags = '', file = ''] = command ?? [];
  return command ? [{ name, file, flags: flagsOf(flags) }] : [];
});

/** Its files are named from the root of the checkout. */
function flagsOf(text: string): string[] {
  const flags = text.split(' ').filter((flag) => flag !== '');
  return flags.map((flag) => flag.replace('=./', `=${ROOT}`));
}

test('the page starts each process', () => {
  expect(COMMANDS.map(({ name }) => name)).toEqual(['intake', 'worker', 'api', 'vendor-simulator']);
});

test.each(COMMANDS)('npm run $name', async ({ name, file, flags }) => {
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
  expect(await started.kill('SIGTERM'), name).toBe(0);
  // A warning of Node's own looks like a fault to a person who starts it for the first time.
  expect(started.logs.filter((line) => 'stderr' in line || 'text' in line)).toEqual([]);
});
