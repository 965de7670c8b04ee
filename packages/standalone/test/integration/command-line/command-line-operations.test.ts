/** `sluice` for operators: webhooks and replays, purchases in review, the schema and the ledgers. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from '../fleet-under-test.ts';
import {
  runProgram,
  runSluice,
  SLUICE,
  sluiceOnTerminal,
  sluiceSettings,
} from '../program-under-test.ts';
import { makeWebhook } from './followed-sluice.ts';

let fleet: Fleet;
beforeAll(async () => void (fleet = await startFleet()));
afterAll(() => fleet.close());

const sluice = (...words: string[]) => runSluice(fleet, words);

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

/** A webhook with a long name of wide letters and a long address, and a short one. */
async function makeLongWebhook(): Promise<{ id: string; name: string; endpoint: string }> {
  const name = '注文の通知を受け取るもの 🚚';
  const endpoint = `http://127.0.0.1:9/${'orders/'.repeat(20)}`;
  const made = await sluice('--json', 'webhooks', 'create', name, endpoint, '--event', 'event');
  await makeWebhook(fleet, 'http://127.0.0.1:9/short');
  return { id: String((JSON.parse(made.output) as { id: number }).id), name, endpoint };
}

/** By the place on the terminal: each of the wide letters of the tests takes two columns there. */
const onTerminal = (line: string): string => line.replaceAll(/[\u3000-\u9FFF]|🚚/gu, '##');
const LISTED = ['id', 'name', 'state', 'waiting', 'last_delivered_at', 'endpoint'];
/** The beginnings of the cells of a row, which have no two spaces. */
const beginningsOf = (line: string): number[] =>
  [...onTerminal(line).matchAll(/(?<=^|  )\S/g)].map(({ index }) => index);

test.each([60, 100])('webhooks list fits a terminal of %i columns', async (columns) => {
  const { id } = await makeLongWebhook();
  const lines = await sluiceOnTerminal(fleet, columns, ['webhooks', 'list']);
  const [head = '', ...rows] = lines;
  expect(lines.filter((line) => onTerminal(line).length > columns)).toEqual([]);
  const names = head.split(/ {2,}/);
  expect(names).toHaveLength(LISTED.length);
  for (const [index, name] of names.entries())
    expect(LISTED[index]?.startsWith(name.replace('…', '')), name).toBe(true);
  expect(rows.length).toBeGreaterThanOrEqual(2);
  for (const row of rows) expect(beginningsOf(row), row).toEqual(beginningsOf(head));
  // The name and the endpoint are there, if only by their beginnings.
  expect(rows.find((row) => row.startsWith(`${id} `))).toMatch(
    /^\d+ +注文の通.* healthy +0 +- +http:\/\/.*…$/,
  );
});

test('webhooks list in a pipe has whole rows and the same columns, and no colours, also if the environment asks for some', async () => {
  const { id, name, endpoint } = await makeLongWebhook();
  const plain = await sluice('webhooks', 'list');
  const forced = runProgram(SLUICE, ['webhooks', 'list'], {
    ...sluiceSettings(fleet),
    ...{ COLUMNS: '40', TERM: 'xterm-256color', FORCE_COLOR: '3' },
  });
  expect(await forced.ended).toBe(0);
  expect(forced.output).toBe(plain.output);
  expect(plain.output).not.toContain('\u001B');
  const [head = '', ...rows] = plain.output.trimEnd().split('\n');
  expect(head.split(/ {2,}/)).toEqual(LISTED);
  for (const row of rows) expect(beginningsOf(row), row).toEqual(beginningsOf(head));
  const row = rows.find((each) => each.startsWith(`${id} `));
  expect(row?.split(/ {2,}/)).toEqual([id, name, 'healthy', '0', '-', endpoint]);
});

test('a terminal has colours, and none with NO_COLOR or in a table of webhooks', async () => {
  const unready = createServer((_, response) => response.writeHead(503).end('{}'));
  onTestFinished(() => void unready.close());
  await once(unready.listen(0, '127.0.0.1'), 'listening');
  const worker = `http://127.0.0.1:${(unready.address() as AddressInfo).port}`;
  const shown = async (words: string[], more: Record<string, string> = {}): Promise<string> =>
    (await sluiceOnTerminal(fleet, 200, words, more)).join('\n');
  const status = ['status', '--worker-url', worker];
  expect(await shown(status)).toContain(`${worker}: \u001B[31m`);
  const plain = await shown(status, { NO_COLOR: '1' });
  expect(plain).toContain(`${worker}: `);
  expect(plain).not.toContain('\u001B');
  await makeWebhook(fleet, 'http://127.0.0.1:9/short');
  expect(await shown(['webhooks', 'list'], { NO_COLOR: '1' })).not.toContain('\u001B');
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
  const id = await makeWebhook(fleet, 'http://127.0.0.1:9/nowhere');
  const counted = await sluice(
    ...['--json', 'webhooks', 'replay', String(id)],
    ...['--since', '2026-01-01T00:00:00Z', '--dry-run'],
  );
  expect(JSON.parse(counted.output)).toMatchObject({ dry_run: true, count: 0 });
});

test('an unintended replay is listed and cancelled, and a time without its zone starts no replay', async () => {
  const endpoint = 'http://127.0.0.1:9/nowhere';
  const id = String(await makeWebhook(fleet, endpoint));
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
