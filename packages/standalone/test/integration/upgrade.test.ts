/**
 * An upgrade is a step that was tried: data that each of the last two versions with another schema wrote are opened by
 * this one, migrated and served. Those versions are started as they were, from git.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { listEarlierVersions, openHistory, unpackVersion } from './earlier-version.ts';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** Two starts, a stop and a check of the ledgers, ten times slower on a busy machine. */
const TEST_TIMEOUT_MS = 480_000;
const WAIT = { timeout: 90_000 };

const run = promisify(execFile);

const history = await openHistory(ROOT);
const versions = history === undefined ? [] : await listEarlierVersions(ROOT, history, 2);

let parent: string;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'sluice-test-upgrade-'));
  await chmod(parent, 0o711);
});
afterAll(async () => {
  await rm(parent, { recursive: true, force: true });
  if (history !== undefined && history !== ROOT)
    await rm(history, { recursive: true, force: true });
});

// An unpacked archive, or a shallow clone without its origin, has no earlier version.
test.skipIf(history === undefined)('the history has two versions to come from', () => {
  expect(versions).toHaveLength(2);
});

const api = async (url: string, path: string, body?: object): Promise<Record<string, unknown>> => {
  const answer = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${DEMO.appKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, ...((await answer.json()) as object) };
};

test.each(versions)(
  'data of $schema ($commit) are opened, migrated and served',
  { timeout: TEST_TIMEOUT_MS },
  async (version) => {
    const folder = await unpackVersion(ROOT, history ?? ROOT, version);
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const directory = join(parent, version.schema);

    const before = await startStandaloneUnderTest(directory, folder);
    const calls = [
      { type: 'identify', userId: 'ada', traits: { email: 'ada@example.com', plan: 'pro' } },
      { type: 'group', userId: 'ada', groupId: 'acme', traits: { name: 'Acme' } },
      { type: 'track', userId: 'ada', event: 'bought', messageId: 'bought', properties: { n: 1 } },
    ];
    expect((await before.call('/v1/batch', { batch: calls })).status).toBe(200);
    const webhook = {
      name: 'Receiver',
      // No server listens: undelivered events have to come along too.
      endpoint: 'http://127.0.0.1:1/hook',
      events: ['customer_subscribed', 'customer_unsubscribed'],
    };
    expect(await api(before.apiUrl, '/v1/reporting_webhooks', webhook)).toMatchObject({ id: 1 });
    await before.call('/v1/identify', { userId: 'ada', traits: { unsubscribed: true } });
    await expect
      .poll(() => api(before.apiUrl, '/v1/customers/ada/attributes'), WAIT)
      .toMatchObject({
        customer: { unsubscribed: true, attributes: { plan: 'pro' } },
      });
    await before.stop();

    const after = await startStandaloneUnderTest(directory);
    expect(await api(after.apiUrl, '/v1/customers/ada/attributes')).toMatchObject({
      customer: { unsubscribed: true, attributes: { plan: 'pro', email: 'ada@example.com' } },
    });
    // The stop may have left the call for this version to apply.
    await expect
      .poll(() => api(after.apiUrl, '/v1/customers/ada/relationships'), WAIT)
      .toMatchObject({ cio_relationships: [{ identifiers: { object_id: 'acme' } }] });
    // Its secret is decrypted, and its waiting deliveries are known.
    expect(await api(after.apiUrl, '/v1/reporting_webhooks/1/state')).toMatchObject({
      status: 200,
    });
    // The message again has no effect; a new one is taken, and delivered to webhooks that ask.
    await after.call('/v1/track', { userId: 'ada', event: 'bought', messageId: 'bought' });
    await after.call('/v1/track', { userId: 'ada', event: 'came back', messageId: 'back' });
    await expect.poll(() => namesOfActivities(after.apiUrl), WAIT).toEqual(['bought', 'came back']);
    await verifies(directory);
    await after.stop();
  },
);

async function namesOfActivities(url: string): Promise<string[]> {
  const { activities } = await api(url, '/v1/customers/ada/activities?type=event');
  return (activities as { name: string }[]).map(({ name }) => name).toSorted();
}

/** The ledgers agree with the records. */
async function verifies(directory: string): Promise<void> {
  const env = { PATH: process.env['PATH'], SLUICE_DIRECTORY: directory };
  const { stdout } = await run(process.execPath, [join(ROOT, 'scripts/verify.ts')], { env });
  expect(stdout).toMatch(/^ok/);
  expect(stdout).not.toMatch(/FAILED/);
}

test(
  'data that cannot be opened: the error names the version that can, and how to set them aside',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    // Data that a test before has left, if one has.
    const directory = join(parent, versions[0]?.schema ?? 'of this version');
    if (!existsSync(join(directory, 'version.json'))) {
      const start = await startStandaloneUnderTest(directory);
      await start.stop();
    }
    const made = JSON.parse(await readFile(join(directory, 'version.json'), 'utf8')) as {
      commit: string | null;
    };
    await writeFile(
      join(directory, 'version.json'),
      JSON.stringify({ ...made, version: '9.8.7', commit: 'abcdef123456' }),
    );
    await writeFile(join(directory, 'postgres', 'PG_VERSION'), '17\n');
    const refused = startStandaloneUnderTest(directory);
    await expect(refused).rejects.toThrow(
      /DATABASE_START_FAILED: the data in .* are of Postgres 17, and this version of Sluice has Postgres 18\nSluice 9\.8\.7, commit abcdef123456, opened these data on .*: git checkout abcdef123456 && npm start\. To begin anew and keep these data: mv (\S+) \1\.before\n/,
    );
    await rm(join(directory, 'version.json'));
    await expect(startStandaloneUnderTest(directory)).rejects.toThrow(
      /A version from before .* wrote these data.*: mv (\S+) \1\.before\n/,
    );
  },
);
