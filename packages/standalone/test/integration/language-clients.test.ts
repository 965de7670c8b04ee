/**
 * Clients of Python and Java, unmodified, against the running services. Without the language or a package registry
 * these tests are skipped, and a line gives the reason.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';
import { installClients, JAVA, PYTHON } from './installed-clients.ts';
import { LOCAL_CERTIFICATE, LOCAL_CERTIFICATE_KEY } from './local-certificate.ts';

const PYTHON_PROGRAM = fileURLToPath(new URL('python_clients.py', import.meta.url));
const JAVA_PROGRAM = fileURLToPath(new URL('SegmentClient.java', import.meta.url));

/** Newer clients send keys of this form as Bearer tokens. */
const REGION_KEY = 'pk_us_0123456789abcdef';

const [python, java] = await Promise.all([installClients(PYTHON), installClients(JAVA)]);

describe.skipIf(python === undefined && java === undefined)('clients', () => {
  let fleet: Fleet;
  let tls: Server;
  let certificateFile: string;
  let folder: string;

  beforeAll(async () => {
    fleet = await startFleet();
    const hash = createHash('sha256').update(REGION_KEY).digest();
    await sql`insert into api_credentials (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint)
              values (1, 1, 'pipelines', 'region', null, ${hash}, 'cdef')`.execute(fleet.database);
    tls = await endTls(fleet.intake.url);
    folder = await mkdtemp(join(tmpdir(), 'sluice-python-'));
    certificateFile = join(folder, 'ca.pem');
    await writeFile(certificateFile, LOCAL_CERTIFICATE);
    await vi.waitFor(async () => {
      const answer = await fetch(`${fleet.intake.url}/v1/projects/${REGION_KEY}/settings`);
      if (answer.status !== 200) throw new Error('the key is not in force yet');
    }, WAIT);
  });
  afterAll(async () => {
    tls.close();
    tls.closeAllConnections();
    await rm(folder, { recursive: true });
    await fleet.close();
  });

  const run = (
    command: string,
    words: readonly string[],
    user: string,
    writeKey: string = DEMO.writeKey,
  ) =>
    promisify(execFile)(command, words, {
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        PYTHONPATH: python,
        SLUICE_USER: user,
        SLUICE_INTAKE: fleet.intake.url,
        SLUICE_WRITE_KEY: writeKey,
        SLUICE_SITE: DEMO.siteId,
        SLUICE_KEY: DEMO.apiKey,
        SLUICE_TLS_PORT: String((tls.address() as AddressInfo).port),
        REQUESTS_CA_BUNDLE: certificateFile,
      },
      timeout: 90_000,
    });

  async function expectWhole(user: string): Promise<void> {
    await fleet.event(user, 'last');
    expect(await fleet.event(user, 'looked')).toMatchObject({ data: { k: 1 } });
    expect(await fleet.event(user, 'Home')).toMatchObject({
      type: 'page',
      data: { url: 'https://shop.example/' },
    });
    await vi.waitFor(async () => {
      expect((await fleet.customer(user)).attributes).toMatchObject({
        email: `${user}@example.com`,
        plan: 'pro',
      });
      expect(await fleet.relationships(user)).toContain(`company-${user}`);
    }, WAIT);
  }

  test.skipIf(python === undefined).each([
    ['customerio.analytics', REGION_KEY],
    ['segment.analytics', DEMO.writeKey],
    ['rudderstack.analytics', DEMO.writeKey],
  ])('Python %s: each call is there once, and a NaN costs itself', async (client, key) => {
    const user = `py-${client.split('.')[0] ?? ''}`;
    await run('python3', [PYTHON_PROGRAM, client], user, key);
    await expectWhole(user);
    expect(await fleet.event(user, 'bought')).toMatchObject({
      data: { k: 1, price: null, most: null },
    });
    expect(await fleet.event(user, 'Home')).toMatchObject({ data: { category: 'docs' } });
    expect(await fleet.events(user)).toHaveLength(4);
  });

  test.skipIf(python === undefined)(
    'Python customerio: by TLS with a certificate of our own',
    async () => {
      const user = 'py-track';
      await run('python3', [PYTHON_PROGRAM, 'customerio'], user);
      await fleet.event(user, 'last');
      expect(await fleet.event(user, 'bought')).toMatchObject({ data: { k: 1, price: null } });
      expect(await fleet.event(user, 'https://shop.example/docs')).toMatchObject({ type: 'page' });
      const { attributes, devices } = await fleet.customer(user);
      expect(attributes).toMatchObject({ email: `${user}@example.com`, plan: 'pro' });
      expect(devices).toMatchObject([{ id: 'token', platform: 'ios', last_used: 1_790_000_001 }]);
    },
  );

  test.skipIf(java === undefined)(
    'Java com.segment.analytics.java: each call is there once',
    async () => {
      const user = 'java-segment';
      await run('java', ['-cp', `${java}/*`, JAVA_PROGRAM], user);
      await expectWhole(user);
      expect(await fleet.events(user)).toHaveLength(3);
    },
  );
});

/** Acts as a proxy in front of intake. */
async function endTls(url: string): Promise<Server> {
  const { hostname, port } = new URL(url);
  const server = createServer(
    { cert: LOCAL_CERTIFICATE, key: LOCAL_CERTIFICATE_KEY },
    (incoming, outgoing) => {
      const { method, url: path, headers } = incoming;
      const onward = request({ hostname, port, method, path, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy());
      incoming.pipe(onward);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
