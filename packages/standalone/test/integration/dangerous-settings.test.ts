/** Settings that would open an installation without anybody noticing: each service, started as an operator starts it. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiSettings } from '@sluice/api/settings';
import { simulatorSettings } from '@sluice/billing-vendor/settings';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  beginServiceUnderTest,
  runProgramUnderTest,
  TEST_SEALING_KEYS,
} from '@sluice/platform/testing/service-under-test';
import { intakeSettings } from '@sluice/intake/settings';
import { findMisspeltSettings } from '@sluice/platform/settings/misspelt-settings';
import { workerSettings } from '@sluice/worker/process/settings';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  allowsPrivateAddresses,
  standaloneSettings,
  SUPERVISOR_SETTING_NAMES,
} from '../../src/settings.ts';
import { parseSettings } from '@sluice/platform/settings/config';

const mainOf = (name: string) =>
  fileURLToPath(new URL(`../../../${name}/src/main.ts`, import.meta.url));

const SERVICES = ['intake', 'worker', 'api'] as const;
type Service = (typeof SERVICES)[number];

const portOf = (service: Service) => ({ [`${service.toUpperCase()}_PORT`]: '0' });

/** Starts a service on a database that is there, and stops it at the test's end. */
async function begin(service: Service, url: string, changes: Record<string, string>) {
  const begun = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: url,
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    ...portOf(service),
    ...changes,
  });
  onTestFinished(async () => void (await begun.kill('SIGTERM')));
  return begun;
}

/** The last line of a service that does not start. */
async function refusalOf(service: string, changes: Record<string, string>) {
  const { code, output } = await runProgramUnderTest(mainOf(service), {
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    SEALING_KEYS: TEST_SEALING_KEYS,
    ...changes,
  });
  expect(code).toBe(1);
  return output.trim().split('\n').at(-1) ?? '';
}

test.each([...SERVICES, 'standalone'])(
  '%s does not start with NODE_ENV=prod, which would count as development',
  async (service) => {
    expect(await refusalOf(service, { NODE_ENV: 'prod' })).toMatch(
      /NODE_ENV: must be development, test or production/,
    );
  },
);

test.each(['prod', 'Production', 'staging', 'production '])('NODE_ENV=%s is no mode', (mode) => {
  expect(() => parseSettings(standaloneSettings, { NODE_ENV: mode })).toThrow(/NODE_ENV/);
});

test.each(['development', 'production'])(
  'the API does not start in %s with a real payment provider and a public secret for its events',
  async (mode) => {
    const changes = {
      NODE_ENV: mode,
      API_SECRET: 'a'.repeat(32),
      STRIPE_SECRET_KEY: 'sk_live_key',
    };
    expect(await refusalOf('api', changes)).toMatch(/STRIPE_WEBHOOK_SECRET is required/);
    const given = { ...changes, STRIPE_WEBHOOK_SECRET: 'whsec_simulator' };
    expect(await refusalOf('api', given)).toMatch(/STRIPE_WEBHOOK_SECRET is required/);
  },
);

test('the API does not start if sign-up needs an invitation that is not set', async () => {
  expect(await refusalOf('api', { API_SIGNUP: 'invitation' })).toMatch(
    /API_SIGNUP_INVITATION is req/,
  );
});

test('the API does not start in production without a secret of its own', async () => {
  expect(await refusalOf('api', { NODE_ENV: 'production' })).toMatch(/API_SECRET is required/);
});

test.each([
  [{}, true],
  [{ NODE_ENV: 'test' }, true],
  [{ NODE_ENV: 'production' }, false],
  [{ NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }, true],
  [{ NODE_ENV: 'development', WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'false' }, false],
  [{ NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE_ADDRESSES: '' }, false],
  [{ API_HOST: '0.0.0.0' }, false],
  [{ API_HOST: '192.168.1.7' }, false],
  [{ INTAKE_HOST: '::' }, false],
  [{ API_HOST: '::1', INTAKE_HOST: 'localhost' }, true],
  [{ API_HOST: '0.0.0.0', WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }, true],
  [{ API_TRUSTED_PROXIES: '127.0.0.1' }, false],
  [{ DEMO_HOSTS: 'demo.example.com' }, false],
  [{ DEMO_HOSTS: '' }, true],
])('npm start with %j lets workers reach private addresses: %s', (environment, isAllowed) => {
  expect(allowsPrivateAddresses(parseSettings(standaloneSettings, environment))).toBe(isAllowed);
});

test('a worker logs each webhook whose endpoint it refuses, and in production a setting that allows private addresses', async () => {
  const { database, url } = await createTestDatabase();
  await sql`insert into accounts (account_id, name) values (1, 'a')`.execute(database);
  await sql`insert into environments (account_id, environment_id, name, webhook_signing_key)
            values (1, 1, 'e', 'k')`.execute(database);
  await sql`insert into webhooks (environment_id, name, endpoint, events, signing_key)
            values (1, 'w', 'http://127.0.0.1:8092/metrics', array['x'], 'k')`.execute(database);
  const closed = await begin('worker', url, { NODE_ENV: 'production' });
  const open = await begin('worker', url, {
    NODE_ENV: 'production',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  });
  const hasLogged = (logs: readonly object[], line: object) =>
    vi.waitFor(() => expect(logs).toContainEqual(expect.objectContaining(line)), 60_000);
  await hasLogged(closed.logs, { environmentId: 1, webhookId: 1, host: '127.0.0.1:8092' });
  const msg = expect.stringMatching(/WEBHOOK_ALLOW_PRIVATE_ADDRESSES is true/);
  await hasLogged(open.logs, { msg });
  expect(open.logs).not.toContainEqual(expect.objectContaining({ webhookId: 1 }));
});

test.each(SERVICES)(
  '%s warns of a misspelt setting, with the right name, and starts',
  async (service) => {
    const { url } = await createTestDatabase();
    const name = service.toUpperCase();
    const changes = { [`${name}_HSOT`]: '0.0.0.0', DATABASE_POOLMAX: '5' };
    const begun = await begin(service, url, changes);
    await begun.started;
    const warned = begun.logs.filter((line) => line.nearest !== undefined);
    expect(warned).toMatchObject([
      { setting: `${name}_HSOT`, nearest: `${name}_HOST` },
      { setting: 'DATABASE_POOLMAX', nearest: 'DATABASE_POOL_MAX' },
    ]);
  },
);

test('npm start warns of its own misspelt settings, with the right names', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  onTestFinished(() => void holder.close());
  const { port } = holder.address() as AddressInfo;
  const directory = await mkdtemp(join(tmpdir(), 'sluice-misspelt-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // A port that is taken ends the start.
  const { code, output } = await runProgramUnderTest(mainOf('standalone'), {
    SLUICE_DIRECTORY: directory,
    INTAKE_PORT: String(port),
    SLUICE_DIRECTRY: '/data',
    LOG_FORMT: 'json',
    PROCESS_PER_SERVICES: 'true',
  });
  expect(code).toBe(1);
  const warned = output.matchAll(/^(\w+) is not a setting.* set (\w+), the nearest/gm);
  expect([...warned].map(([, name, nearest]) => [name, nearest])).toEqual([
    ['SLUICE_DIRECTRY', 'SLUICE_DIRECTORY'],
    ['LOG_FORMT', 'LOG_FORMAT'],
    ['PROCESS_PER_SERVICES', 'PROCESS_PER_SERVICE'],
  ]);
});

test('each setting of npm start is a setting of its supervisor or of a service, and no service setting looks misspelt', () => {
  const ofServices = [intakeSettings, workerSettings, apiSettings, simulatorSettings].flatMap(
    ({ shape }) => Object.keys(shape),
  );
  const known = new Set([...SUPERVISOR_SETTING_NAMES, ...ofServices]);
  expect(Object.keys(standaloneSettings.shape).filter((name) => !known.has(name))).toEqual([]);
  const environment = Object.fromEntries([...known].map((name) => [name, 'x']));
  expect(findMisspeltSettings(environment, SUPERVISOR_SETTING_NAMES)).toEqual([]);
});

test.each(SERVICES)(
  '%s in production shows its numbers on its admin port alone, and nowhere without one',
  async (service) => {
    const { url } = await createTestDatabase();
    const name = service.toUpperCase();
    const production = {
      NODE_ENV: 'production',
      API_SECRET: 'a'.repeat(32),
      // The tests' Postgres, which has the queues here, runs without fsync.
      INTAKE_ALLOW_UNDURABLE_BROKER: 'true',
    };
    const page = async (port: number, path: string) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: answer.status, text: await answer.text() };
    };
    const portIn = (logs: readonly Record<string, unknown>[], key: string) =>
      Number(logs.find((line) => line[key] !== undefined)?.[key]);
    const begun = await begin(service, url, { ...production, [`${name}_ADMIN_PORT`]: '0' });
    const { port } = await begun.started;
    await vi.waitFor(() => expect(portIn(begun.logs, 'adminPort')).toBeGreaterThan(0), 20_000);
    const adminPort = portIn(begun.logs, 'adminPort');
    expect((await page(port, '/livez')).status).toBe(200);
    expect((await page(port, '/metrics')).status).toBe(404);
    const keys = Object.keys(JSON.parse((await page(port, '/readyz')).text) as object);
    expect(keys).toEqual(['ready']);
    expect((await page(adminPort, '/metrics')).text).toContain('process_start_time_seconds');
    const details = JSON.parse((await page(adminPort, '/readyz')).text) as object;
    expect(Object.keys(details).length).toBeGreaterThan(1);

    const closed = await begin(service, url, production);
    const closedAt = await closed.started;
    expect((await page(closedAt.port, '/metrics')).status).toBe(404);
    expect(portIn(closed.logs, 'adminPort')).toBeNaN();
  },
);
