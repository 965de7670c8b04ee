/** `sluice …` as operators type it, against running services. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';
import { PARKED, runProgram, runSluice, SLUICE, sluiceSettings } from './program-under-test.ts';

let fleet: Fleet;
const running: ChildProcess[] = [];
beforeAll(async () => void (fleet = await startFleet()));
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});
afterAll(() => fleet.close());

const environment = () => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
  ...sluiceSettings(fleet),
});
const sluice = (...words: string[]) => runSluice(fleet, words);

/** One that goes on until the test ends. */
function follow(...words: string[]): { lines: string[]; notes: string[] } {
  const child = spawn(process.execPath, [SLUICE, ...words], {
    env: environment(),
    detached: true,
  });
  running.push(child);
  // It starts a process of its own; both end with the group.
  child.kill = (signal) => process.kill(-(child.pid as number), signal);
  const lines: string[] = [];
  const notes: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  createInterface(child.stderr).on('line', (line) => notes.push(line));
  return { lines, notes };
}

async function makeWebhook(endpoint: string): Promise<number> {
  const answer = await fetch(`${fleet.api.url}/v1/reporting_webhooks`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${DEMO.appKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      name: 'Listener',
      endpoint,
      events: ['customer_unsubscribed', 'customer_subscribed'],
      disabled: false,
      full_resolution: true,
      with_content: false,
    }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: number }).id;
}

test('--help lists the commands, and a wrong command gets a suggestion', async () => {
  expect((await sluice('--help')).output).toMatch(/status.*webhooks.*events.*tail.*send.*listen/s);
  const wrong = await sluice('stauts');
  expect(wrong.exitCode).toBe(2);
  expect(wrong.errors).toContain('Did you mean status?');
  expect(wrong.errors.trimEnd().split('\n')).toHaveLength(2);
  expect((await sluice('--version')).output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('webhooks create makes a webhook for own events, and its error names the wrong word', async () => {
  const made = await sluice(
    ...['--json', 'webhooks', 'create', 'Orders', 'http://127.0.0.1:9/hook', '--event', 'event'],
    ...['--event-name', 'order_placed', '--with-person-attributes'],
    ...['--filter', 'data.properties.total gte 100', '--filter', 'metric in order_placed,paid'],
  );
  expect(made.errors).toBe('');
  const webhook = JSON.parse(made.output) as { id: number };
  expect(webhook).toMatchObject({
    name: 'Orders',
    events: ['event'],
    event_names: ['order_placed'],
    with_person_attributes: true,
    with_late: false,
    attribute_filters: [
      { field: 'data.properties.total', operator: 'gte', values: ['100'] },
      { field: 'metric', operator: 'in', values: ['order_placed', 'paid'] },
    ],
  });
  const wrong = await sluice('webhooks', 'create', 'A', 'http://a.example/', '--event', 'evnt');
  expect(wrong.exitCode).not.toBe(0);
  expect(wrong.errors).toContain('evnt');
  const half = await sluice(
    ...['webhooks', 'create', 'A', 'http://a.example/', '--event', 'event', '--filter', 'metric'],
  );
  expect(half).toMatchObject({ exitCode: 2, errors: expect.stringContaining('an operator') });
  await fetch(`${fleet.api.url}/v1/reporting_webhooks/${webhook.id}`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${DEMO.appKey}` },
  });
});

test('import sends a file, and waits until its rows are events', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-import-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'orders "of" January.csv');
  const rows = Array.from({ length: 500 }, (_, n) => `bought,importer,${n}`);
  await writeFile(file, ['_svc_name,_svc_customer_id,n', ...rows, ''].join('\n'));
  await fetch(`${fleet.intake.url}/v1/identify`, {
    method: 'POST',
    headers: { Authorization: `Basic ${btoa(`${DEMO.writeKey}:`)}`, 'X-Strict-Mode': '1' },
    body: '{"userId":"importer"}',
  });
  await expect.poll(() => fleet.relationships('importer').catch(() => ''), WAIT).not.toBe('');
  const all = await sluice('--json', 'import', file, '--identifier', 'id');
  expect(all, all.errors).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(all.output)).toMatchObject({
    import: {
      name: 'orders "of" January.csv',
      state: 'imported',
      rows_imported: 500,
      percent: 100,
    },
  });

  await writeFile(file, '_svc_name,_svc_customer_id\nbought,nobody\n');
  const failed = await sluice('--json', 'import', file, '--identifier', 'id');
  expect(failed.exitCode).toBe(1);
  expect(JSON.parse(failed.output)).toMatchObject({ import: { rows_failed: 1 } });
  const missing = await sluice('import', `${file}.gone`, '--identifier', 'id');
  expect(missing.exitCode).toBe(1);
  expect(missing.errors).toMatch(/cannot be read \(ENOENT.*\); name a file that you may read/);
});

test('status lists the running processes and exits with 1 if one does not run', async () => {
  const all = await sluice('status', '--worker-url', fleet.worker.url);
  expect(all).toMatchObject({ exitCode: 0 });
  expect(all.output.match(/^http.* (?:s|min) +ready$/gm)).toHaveLength(3);
  expect(all.output).toMatch(/^http\S+ +worker +\d+\.\d+\.\d+ /m);
  const one = await sluice('--json', 'status', '--worker-url', 'http://127.0.0.1:1');
  expect(one.exitCode).toBe(1);
  expect(JSON.parse(one.output)).toMatchObject({ ready: false });
});

// 1 would mean that the ledger was changed, or that secrets are lost.
test.each(['verify --jsn', '--api-url x verify', 'secrets lost --replace', 'secrets lost x y'])(
  'wrong words end `sluice %s` with 2, because 1 is for its findings',
  async (words) => {
    const program = runProgram(SLUICE, words.split(' '), {});
    expect(await program.ended).toBe(2);
    expect(program.errors).toMatch(/^error: /);
  },
);
test.each([
  ['verify.ts', '--jsn'],
  ['migrate.ts', 'now'],
  ['secrets.ts', 'lost', '--replace'],
  ['purchases.ts', 'list', '--all'],
])('and so do they end scripts/%s %s, with its usage', async (file, ...words) => {
  const program = runProgram(join(PARKED, '..', file), words, {});
  expect(await program.ended).toBe(2);
  expect(program.errors).toMatch(/^(?!.*\n +at ).*\nusage: sluice /s);
});

test('a write key that is not in force ends send with a hint at --write-key', async () => {
  const { exitCode, errors } = await sluice('send', '--count', '1', '--write-key', 'nobody');
  expect(exitCode).toBe(4);
  expect(errors).toContain('does not know the write key; is --write-key (SLUICE_WRITE_KEY) right?');
});

test('send sends the events that it reports; tail and trace show them, and issues shows a faulty call', async () => {
  const tail = follow('--json', 'tail', '--name', 'Order Completed');
  await vi.waitFor(() => expect(tail.notes.join()).toContain('listening'), WAIT);

  const sent = await sluice('--json', 'send', '--count', '200', '--batch', '10', '--seed', '5');
  expect(JSON.parse(sent.output)).toMatchObject({ sent: 200, accepted: 200, failures: {} });
  expect(sent.exitCode).toBe(0);

  // Intake hears of a reader a moment after the reader listens: the same events again, if it was too late.
  await vi.waitFor(async () => {
    if (tail.lines.length === 0)
      await sluice('send', '--count', '200', '--batch', '10', '--seed', '5');
    expect(tail.lines.length).toBeGreaterThan(0);
  }, WAIT);
  const { details } = JSON.parse(tail.lines[0] ?? '') as { details: { event_id: string } };
  const trace = await vi.waitFor(async () => {
    const found = await sluice('--json', 'events', 'trace', details.event_id);
    expect(found.exitCode).toBe(0);
    return JSON.parse(found.output) as unknown;
  }, WAIT);
  expect(trace).toMatchObject({ event: { name: 'Order Completed' } });

  await fetch(`${fleet.intake.url}/v1/track`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}` },
    body: '{"event":"Nobody"}',
  });
  await vi.waitFor(
    async () =>
      expect((await sluice('issues', '--code', 'required', '--severity', 'error')).output).toMatch(
        /\berror\b.*\brequired\b.*userId/,
      ),
    WAIT,
  );
});

test('a result that cannot be written is an error with exit code 1, because a secret is shown once', async () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const words = ['--json', 'keys', 'make', 'app', 'Nowhere', '--workspace', '1'];
  const child = spawn(process.execPath, [SLUICE, ...words], {
    env: environment(),
    stdio: ['ignore', full, 'pipe'],
  });
  running.push(child);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [exitCode] = (await once(child, 'close')) as [number];
  expect(errors).toContain('the output could not be written (ENOSPC');
  expect(exitCode).toBe(1);
});

test('a tail goes on after the reader of its notes is gone: `sluice tail 2>&1 > lines | head -1`', async () => {
  const tail = follow('--json', 'tail', '--name', 'Order Completed');
  running.at(-1)?.stderr?.destroy();
  await vi.waitFor(async () => {
    await sluice('send', '--count', '50', '--batch', '50', '--seed', '7');
    expect(tail.lines.length).toBeGreaterThan(0);
  }, WAIT);
});

test('listen separates genuine deliveries from others', async () => {
  const listener = follow('--json', 'listen', '--port', '0', '--secret', DEMO.signingKey);
  const url = await vi.waitFor(() => {
    const [, found] = /listening on (\S+);/.exec(listener.notes.join()) ?? [];
    expect(found).toBeDefined();
    return found as string;
  }, WAIT);

  const id = await makeWebhook(`${url}/hook`);
  expect((await sluice('webhooks', 'list')).output).toContain(`${url}/hook`);
  expect((await sluice('webhooks', 'test', String(id))).exitCode).toBe(0);
  await vi.waitFor(
    () =>
      expect(JSON.parse(listener.lines[0] ?? '{}')).toMatchObject({
        signature: 'genuine',
        status: 200,
      }),
    WAIT,
  );
  expect((await fetch(`${url}/hook`, { method: 'POST', body: '{}' })).status).toBe(401);
  expect((await sluice('webhooks', 'show', String(id))).output).toContain('state: healthy');
});

test('a purchase in review is listed, released once, and taken up by a worker', async () => {
  const accountId = DEMO.accountId;
  const content = { type: 'addons', skus: ['a'], contact: { name: 'a', email: 'a@example.com' } };
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at, review_reason)
    values (${accountId}, 'run_aside', 'addons', 'addons', 'card', '', ${JSON.stringify(content)},
            '{"actor": {"type": "system"}}', '2026-03-01T00:00:00Z', 'paid after it was declined')`.execute(
    fleet.database,
  );
  const listed = await sluice('--json', 'purchases', 'list');
  expect(JSON.parse(listed.output)).toMatchObject([
    {
      accountId,
      runId: 'run_aside',
      status: 'pending',
      reviewReason: 'paid after it was declined',
    },
  ]);
  expect((await sluice('purchases', 'list')).output).toMatch(
    /^run_aside {2}account \d+ {2}addons {2}pending .* paid after it was declined\n$/,
  );
  const released = await sluice('purchases', 'release', 'run_aside');
  expect(released).toMatchObject({ exitCode: 0, errors: '' });
  expect(released.output).toContain('goes on');
  // Each claim takes the next fence.
  await vi.waitFor(async () => {
    const { rows } = await sql<{ fence: number }>`
      select fence::int from runs where run_id = 'run_aside'`.execute(fleet.database);
    expect(rows[0]?.fence).toBeGreaterThan(0);
  }, WAIT);
  const { rows } = await sql<{ action: string; changes: unknown }>`
    select action, changes from audit_logs where account_id = ${accountId} and run_id = 'run_aside'
     order by audit_log_id limit 1`.execute(fleet.database);
  expect(rows).toEqual([
    {
      action: 'updated',
      changes: [
        {
          attribute: 'review_reason',
          from: 'paid after it was declined',
          to: null,
          redacted: false,
        },
      ],
    },
  ]);

  const again = await sluice('purchases', 'release', 'run_aside');
  expect(again).toMatchObject({ exitCode: 2, output: '' });
  expect(again.errors).toContain('no purchase run_aside is in manual review');
  expect(JSON.parse((await sluice('--json', 'purchases', 'list')).output)).toEqual([]);
});

test('a replay counts before it sends', async () => {
  const id = await makeWebhook('http://127.0.0.1:9/nowhere');
  const counted = await sluice(
    ...['--json', 'webhooks', 'replay', String(id)],
    ...['--since', '2026-01-01T00:00:00Z', '--dry-run'],
  );
  expect(JSON.parse(counted.output)).toMatchObject({ dry_run: true, count: 0 });
});

test('an unintended replay is listed and cancelled, and a time without its zone starts no replay', async () => {
  const endpoint = 'http://127.0.0.1:9/nowhere';
  const id = String(await makeWebhook(endpoint));
  const slip = await sluice('webhooks', 'replay', id, '--since', '1');
  expect(slip).toMatchObject({ exitCode: 2, output: '' });
  expect(slip.errors).toContain('It must be a time with its zone');
  expect((await sluice('webhooks', 'replays', id)).output).toBe(`webhook ${id} has no replay\n`);

  // One that waits for its endpoint, which is the same still: no worker ends it meanwhile.
  await sql`
    insert into webhook_replays (environment_id, webhook_id, replay_id, criteria, rate_per_second, total, created_by,
                                 created_at, through_sequence, cursor_sequence, endpoint, lane_state, next_probe_at)
    values (${DEMO.environmentId}, ${id}, 7, '{}', 1, 1000, 'somebody', now(), 1000, 0, ${endpoint}, 'failing',
            now() + interval '5 minutes')`.execute(fleet.database);
  expect((await sluice('webhooks', 'replays', id)).output).toMatch(/7 +running .* somebody/);
  const cancelled = await sluice('--json', 'webhooks', 'cancel-replay', id, '7');
  expect(JSON.parse(cancelled.output)).toMatchObject({ id: 7, state: 'cancelled' });
  expect(await sluice('webhooks', 'cancel-replay', id, '8')).toMatchObject({
    exitCode: 1,
    errors: 'sluice: the replay was not found\n',
  });
});

test('migrate and verify write JSON alone, line by line, and verify names the failed check', async () => {
  expect(JSON.parse((await sluice('--json', 'migrate')).output)).toEqual({ migrated: [] });
  const verify = async () => {
    const { output, exitCode } = await sluice('--json', 'verify');
    const lines = output.trimEnd().split('\n');
    return {
      exitCode,
      checks: lines.map((line) => JSON.parse(line) as { check: string; ok: boolean }),
    };
  };
  const planted = async (people: number) => {
    await sql`insert into people_counts (environment_id, people)
              values (${DEMO.environmentId}, ${people})`.execute(fleet.database);
  };
  await planted(7);
  const { exitCode, checks } = await verify();
  expect(exitCode).toBe(1);
  expect(checks.filter(({ ok }) => !ok)).toMatchObject([
    { check: 'number of people', count: 1, differences: [expect.stringContaining('counted')] },
  ]);
  await planted(-7);
  expect(await verify()).toMatchObject({ exitCode: 0 });
});

test('Ctrl-C ends a command that waits for an API that hangs, with exit code 130', async () => {
  const hanging = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void hanging.close());
  await once(hanging, 'listening');
  const asked = once(hanging, 'connection') as Promise<[Socket]>;
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  const program = runProgram(SLUICE, ['webhooks', 'list'], { SLUICE_API_URL: url });
  const [socket] = await asked;
  socket.on('error', () => {});
  program.child.kill('SIGINT');
  expect(await program.ended).toBe(130);
  expect(program.errors).toBe('sluice: stopped before the API had answered\n');
});

test('a failed command prints an error that names the cause or the option to correct', async () => {
  const unknown = await sluice('webhooks', 'show', '999999');
  expect(unknown).toMatchObject({ exitCode: 1, output: '' });
  expect(unknown.errors).toMatch(/^sluice: .*not found/);
  const wrongKey = await sluice('--key', 'nonsense', 'webhooks', 'list');
  expect(wrongKey.errors).toContain('--key (SLUICE_KEY)');
  const nobody = await sluice('--api-url', 'http://127.0.0.1:1', 'webhooks', 'list');
  expect(nobody.errors).toContain('--api-url (SLUICE_API_URL)');
});

test.each(['migrate', 'verify', 'purchases list', 'secrets lost'])(
  '%s names the address that it tried for Postgres, and not the password',
  async (words) => {
    const program = runProgram(SLUICE, words.split(' '), {
      DATABASE_URL: 'postgres://sluice:hunter2@127.0.0.1:1/sluice',
      SEALING_KEYS: `1:${Buffer.alloc(32).toString('base64')}`,
    });
    expect(await program.ended).toBe(2);
    expect(program.errors).toMatch(
      /^Postgres does not answer at the address of DATABASE_URL \(.*127\.0\.0\.1:1\); check.*\n$/,
    );
    expect(program.errors).not.toContain('hunter2');
    expect(program.output).toBe('');
  },
);
