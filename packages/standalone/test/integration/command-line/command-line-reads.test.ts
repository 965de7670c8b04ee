/**
 * `sluice` for people who look for something: people, events, deliveries, the account. In each form, and with its exit
 * code.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from '../fleet-under-test.ts';
import { runProgram, runSluice, SLUICE, sluiceSettings } from '../program-under-test.ts';

let fleet: Fleet;
// A failure that waits an hour waits for the probe of a test.
const SETTINGS = { WEBHOOK_LISTED_FAILURE_WAIT_MS: '3600000' };
beforeAll(async () => void (fleet = await startFleet('redis', SETTINGS)));
afterAll(() => fleet.close());

const sluice = (...words: string[]) => runSluice(fleet, words);

async function read(...words: string[]): Promise<unknown> {
  const { output, errors } = await sluice('--json', ...words);
  expect(errors).toBe('');
  return JSON.parse(output);
}

const call = (path: string, body: object) =>
  fetch(`${fleet.intake.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${DEMO.writeKey}:`)}`,
      'content-type': 'application/json',
      'x-strict-mode': '1',
    },
    body: JSON.stringify(body),
  });

/** A receiver of somebody's, whose answer the test chooses. */
async function startReceiver(status: number) {
  const answer = { status };
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      bodies.push(body);
      // A failing receiver asks for an hour: without it the worker tries again between two calls of a test.
      const headers = answer.status === 200 ? {} : { 'retry-after': '3600' };
      response.writeHead(answer.status, headers).end();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return { answer, bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

test('a person, the events and an object are found, and shown as tables, JSON, YAML and CSV', async () => {
  await call('/v1/identify', {
    userId: 'reader-1',
    traits: { email: 'Reader@Example.com', plan: 'pro' },
  });
  await call('/v1/track', {
    userId: 'reader-1',
    event: 'read',
    messageId: 'read-1',
    properties: { page: 7 },
  });
  await call('/v1/group', {
    userId: 'reader-1',
    groupId: 'acme',
    objectTypeId: '1',
    traits: { size: 3 },
  });
  await vi.waitFor(
    async () =>
      expect(await read('people', 'show', 'reader-1', '--part', 'relationships')).toMatchObject([
        { identifiers: { object_id: 'acme' } },
      ]),
    WAIT,
  );
  expect(await read('people', 'list', 'reader')).toMatchObject([{ id: 'reader-1' }]);
  expect(await read('people', 'list', 'READER@')).toMatchObject([{ email: 'Reader@Example.com' }]);
  expect(await read('people', 'show', 'reader@example.com', '--by', 'email')).toMatchObject({
    attributes: { plan: 'pro' },
  });
  expect(await read('events', 'show', 'read-1')).toMatchObject({ name: 'read', data: { page: 7 } });
  expect(await read('objects', 'show', '1', 'acme')).toMatchObject({ attributes: { size: '3' } });
  expect((await sluice('--output', 'csv', 'objects', 'list', '1')).output).toMatch(
    /^object_type_id,object_id,svc_object_id\n1,acme,ob/,
  );
  expect(
    (await sluice('--output', 'yaml', '--columns', 'id', 'people', 'list', 'reader')).output,
  ).toBe('- id: "reader-1"\n'.replaceAll('"', ''));
  const trace = await sluice('events', 'trace', 'read-1');
  expect(trace.output).toMatch(
    /^event read {2}read-1\nperson a3\w+\n\n.* \+0 ms {2}received by pipelines.track\n/,
  );
  const table = await sluice('people', 'show', 'reader-1', '--part', 'activities');
  expect(table.output).toMatch(/ UTC \((?:now|\d+ (?:ms|s|min) ago)\) +event +read /);
});

test('a list that is cut is reported beside the rows, which stay exact', async () => {
  for (const userId of ['cut-1', 'cut-2']) {
    await call('/v1/identify', { userId });
    await call('/v1/group', { userId, groupId: userId, traits: { objectTypeId: '7' } });
  }
  await vi.waitFor(async () => expect(await read('people', 'list', 'cut-')).toHaveLength(2), WAIT);
  await vi.waitFor(async () => expect(await read('objects', 'list', '7')).toHaveLength(2), WAIT);
  for (const words of [
    ['people', 'list', 'cut-'],
    ['objects', 'list', '7'],
  ]) {
    const cut = await sluice('--json', ...words, '--limit', '1');
    expect(JSON.parse(cut.output)).toHaveLength(1);
    expect(cut.errors).toBe('there are more: raise --limit\n');
    expect((await sluice('--json', ...words, '--limit', '2')).errors).toBe('');
  }
});

test('a missing event is explained, and exit codes separate a miss, a wrong word, an absent API and a refused key', async () => {
  const missing = await sluice('events', 'trace', 'never-sent');
  expect(missing).toMatchObject({ exitCode: 1, output: '' });
  expect(missing.errors).toMatch(
    /waits in a queue.*older than the events that are kept.*has no id/s,
  );
  expect((await sluice('issues', '--code', 'parked')).output).toBe(
    'no issue of code parked is kept\n',
  );
  expect((await sluice('--columns', 'nmae', 'keys', 'list')).exitCode).toBe(2);
  expect((await sluice('--api-url', 'http://127.0.0.1:1', 'webhooks', 'list')).exitCode).toBe(3);
  expect((await sluice('people', 'show', '..')).exitCode).toBe(2);
  expect((await sluice('open', 'person', '..', '--print')).exitCode).toBe(2);
  const refused = await sluice('--key', 'nobody', 'webhooks', 'list');
  expect(refused).toMatchObject({ exitCode: 4, errors: expect.stringContaining('SLUICE_KEY') });
});

test('a failing webhook is explained in the first line, its deliveries are listed, and a probe reports its result', async () => {
  const receiver = await startReceiver(500);
  const made = (await read(
    ...['webhooks', 'create', 'Reads', receiver.url, '--event', 'event', '--event-name', 'paid'],
  )) as { id: number };
  const id = String(made.id);
  await call('/v1/track', { userId: 'reader-1', event: 'paid', messageId: 'paid-1' });
  const show = await vi.waitFor(async () => {
    const { output } = await sluice('webhooks', 'show', id);
    expect(output).toMatch(
      /^Delivery 1 gets 500 since .* \(1 try\)\. No other one waits behind it\.\n/,
    );
    return output;
  }, WAIT);
  expect(show).toMatch(/\n {2}next_probe_at: \d{4}-.* UTC \(in \d/);
  expect((await sluice('status')).output).toContain(`sluice webhooks show ${id}`);

  const failed = await sluice('--json', 'webhooks', 'probe', id);
  expect(failed.exitCode).toBe(1);
  expect(JSON.parse(failed.output)).toMatchObject({
    ...{ result: 'due', outcome: 'failed', sequence: 1, status: 500 },
  });
  const listed = async (...words: string[]) =>
    (await read('deliveries', 'list', ...words)) as { event_id: string; webhook_id?: number }[];
  expect(await listed(id, '--status-class', '5xx')).toMatchObject([{ event_id: 'paid-1' }]);
  expect(await listed(id, '--status-class', '2xx')).toEqual([]);
  expect(await listed('--event-id', 'paid-1')).toMatchObject([{ webhook_id: made.id }]);
  expect(await listed('--person', 'reader-1', '--state', 'retrying')).toHaveLength(1);
  expect(await listed('--person', 'nobody')).toEqual([]);
  expect((await sluice('deliveries', 'list', id)).output).toMatch(/ retrying +500 500 /);

  receiver.answer.status = 200;
  expect(await read('webhooks', 'probe', id)).toMatchObject({ outcome: 'delivered', sequence: 1 });
  const shown = (await read('deliveries', 'show', id, '1')) as { attempts: { status: number }[] };
  expect(shown.attempts.map(({ status }) => status)).toEqual([500, 500, 200]);
  await read('api', 'DELETE', `/v1/reporting_webhooks/${id}`);
});

test('an answer of the API that is no JSON is shown as it is', async () => {
  expect(await sluice('api', 'get', '/livez')).toMatchObject({ output: 'alive\n', exitCode: 0 });
  expect(await read('api', 'get', '/livez')).toBe('alive\n');
});

test('listen passes deliveries on by a webhook of its own, and takes it away again', async () => {
  const program = await startReceiver(200);
  const listening = runProgram(
    SLUICE,
    ['listen', '--forward-to', program.url, '--event', 'event'],
    sluiceSettings(fleet),
  );
  await vi.waitFor(() => expect(listening.errors).toContain('listening on'), WAIT);
  await call('/v1/track', { userId: 'reader-1', event: 'forwarded', messageId: 'forwarded-1' });
  await vi.waitFor(() => expect(program.bodies).toHaveLength(1), WAIT);
  expect(JSON.parse(program.bodies[0] ?? '')).toMatchObject({ event_id: 'forwarded-1' });
  await vi.waitFor(
    () => expect(listening.output).toMatch(/ 200 genuine event forwarded \d+ ms /),
    WAIT,
  );
  expect((await sluice('webhooks', 'list')).output).toContain('sluice listen');
  listening.child.kill('SIGINT');
  expect(await listening.ended).toBe(0);
  expect((await sluice('webhooks', 'list')).output).not.toContain('sluice listen');
});

test('tail shows the events that fit all of its filters', async () => {
  const tail = runProgram(
    SLUICE,
    ['tail', '--source', 'pipelines', '--grep', 'name=wanted', '--grep', 'READER-1'],
    sluiceSettings(fleet),
  );
  await vi.waitFor(() => expect(tail.errors).toContain('listening'), WAIT);
  await vi.waitFor(async () => {
    await call('/v1/track', { userId: 'reader-1', event: 'unwanted' });
    await call('/v1/track', { userId: 'reader-1', event: 'wanted' });
    expect(tail.output).toMatch(/ wanted /);
  }, WAIT);
  expect(tail.output).not.toContain('unwanted');
});

test('the account, its log of changes and its billing are read with its token', async () => {
  await read('keys', 'make', 'app', 'Seen in the log', '--workspace', '1');
  expect(
    await read('audit', 'list', '--object-type', 'api_credential', '--action', 'created'),
  ).toMatchObject([{ object_name: 'Seen in the log', action: 'created' }]);
  expect((await sluice('audit', 'list', '--limit', '1')).output).toMatch(/^id +occurred_at +who /);
  expect(await read('billing', 'show')).toMatchObject({ billing: { rail: 'card' }, usage: {} });
  expect((await sluice('billing', 'purchases')).output).toBe('no purchase yet\n');
  expect(await read('open', 'webhook', '2', '--print')).toEqual({
    url: `${fleet.api.url}/webhooks/2`,
  });
});

test('a key is kept for its owner alone, after it has opened something, and a profile uses it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-login-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const run = async (words: string[], secret = '') => {
    const child = spawn(process.execPath, [SLUICE, ...words], {
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        SLUICE_DIRECTORY: '/nowhere',
        XDG_CONFIG_HOME: folder,
      },
    });
    child.stdin.end(secret);
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => (text += part));
    const [exitCode] = (await once(child, 'close')) as [number];
    return { exitCode, text };
  };
  const login = ['login', '--with-key', '--profile', 'shop', '--api-url', fleet.api.url];
  expect(await run(login, 'nobody\n')).toMatchObject({ exitCode: 4 });
  const wrong = await run(['--profile', 'shop', 'webhooks', 'list']);
  expect(wrong).toMatchObject({ exitCode: 2, text: expect.stringContaining('no profile shop') });
  const kept = await run(login, `${DEMO.appKey}\n`);
  expect(kept).toMatchObject({ exitCode: 0 });
  expect(kept.text).not.toContain(DEMO.appKey);
  expect((await stat(join(folder, 'sluice', 'profiles.json'))).mode & 0o777).toBe(0o600);
  expect(await run(['--profile', 'shop', 'webhooks', 'list'])).toMatchObject({ exitCode: 0 });

  // Calls do not go to the intake or the account of the demo on this machine.
  const sent = await run(['--profile', 'shop', 'send', '--count', '1']);
  expect(sent).toMatchObject({ exitCode: 2, text: expect.stringContaining('give --intake-url') });
  const account = await run(['--profile', 'shop', 'audit', 'list']);
  expect(account).toMatchObject({ exitCode: 4, text: expect.stringContaining('set --token') });

  // A second login adds to the profile.
  const again = ['login', '--with-token', '--profile', 'shop', '--intake-url', fleet.intake.url];
  const added = await run([...again, '--worker-url', fleet.worker.url], `${DEMO.accountToken}\n`);
  expect(added).toMatchObject({ exitCode: 0 });
  for (const words of [['webhooks', 'list'], ['audit', 'list'], ['status']])
    expect(await run(['--profile', 'shop', ...words]), words[0]).toMatchObject({ exitCode: 0 });
});
