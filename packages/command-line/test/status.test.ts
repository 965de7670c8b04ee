import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parseMetrics, readStatus, writeStatus } from '../src/commands/status.ts';
import { collectingTerminal } from './collecting-terminal.ts';

test('the metrics of Sluice are read, and series with labels are summed', () => {
  const page = [
    '# HELP sluice_queued_envelopes Envelopes',
    'sluice_queued_envelopes{service="worker"} 3',
    'sluice_worker_attempts_total{outcome="delivered",service="worker"} 5',
    'sluice_worker_attempts_total{outcome="timeout",service="worker"} 2',
    'process_cpu_seconds_total{service="worker"} 9',
  ].join('\n');
  expect(parseMetrics(page)).toEqual({
    sluice_queued_envelopes: 3,
    sluice_worker_attempts_total: 7,
  });
});

test('disk buffers and refused keys are summed over all intakes, and every other metric is the value furthest from 0', async () => {
  const urls = await Promise.all(
    [
      'sluice_intake_spill_envelopes{service="intake"} 2\nsluice_intake_unauthorized_calls_total{reason="missing"} 1\nsluice_queued_envelopes 7\nsluice_clock_ahead_seconds 0.1\n',
      'sluice_intake_spill_envelopes{service="intake"} 3\nsluice_intake_unauthorized_calls_total{reason="not_in_force"} 4\nsluice_queued_envelopes 9\n',
      'sluice_failing_lanes 1\nsluice_clock_ahead_seconds -42.03925634765625\n',
    ].map(serveMetrics),
  );
  const terminal = collectingTerminal('table');
  expect(writeStatus(terminal, await readStatus(urls))).toBe(true);
  expect(terminal.lines.slice(urls.length + 2)).toEqual([
    'what            value   meaning',
    'queued          9       commit batches wait or run',
    'failing queues  1       webhooks fail and their deliveries are blocked',
    'disk buffer     5       commit batches wait on the disks of intakes',
    'wrong keys      5       calls were not accepted since the start, because their keys are not valid; permissive ones were answered 200',
    'clock           -42.04  s ahead of Postgres, the clock that is furthest off',
  ]);
});

test('a shard that several workers report as stuck is named once', async () => {
  const serveWorker = (stuckQueues: readonly string[]): Promise<string> =>
    serve(({ url }, response) =>
      response
        .writeHead(stuckQueues.length > 0 ? 503 : 200)
        .end(url === '/metrics' ? '' : JSON.stringify({ stuck_queues: stuckQueues })),
    );
  const statusOf = async (...fleet: (readonly string[])[]): Promise<string[]> => {
    const terminal = collectingTerminal('table');
    writeStatus(terminal, await readStatus(await Promise.all(fleet.map(serveWorker))));
    return terminal.lines.slice(fleet.length + 2);
  };
  expect(await statusOf([], [])).toEqual([
    'what   value  meaning',
    'stuck  0      queues make no progress',
  ]);
  expect((await statusOf(['events-3'], ['events-3', 'events-7'])).at(-1)).toBe(
    'stuck  2      queues make no progress: events-3, events-7',
  );
});

test('the reason why commit batches fail is shown once, even if several workers report it', async () => {
  const url = await serve(({ url: path }, response) =>
    response
      .writeHead(503)
      .end(
        path === '/metrics'
          ? ''
          : JSON.stringify({ failing: { seconds: 40, reason: '0A000: no such statement' } }),
      ),
  );
  const terminal = collectingTerminal('table');
  expect(writeStatus(terminal, await readStatus([url, url]))).toBe(false);
  expect(terminal.lines.at(-1)).toBe(
    'failing  2      workers apply no commit batch, each try fails: 0A000: no such statement',
  );
});

test('an undurable broker is shown once, and a broker that is away or safe is not shown', async () => {
  const serveIntake = (readiness: object): Promise<string> =>
    serve(({ url }, response) => response.end(url === '/metrics' ? '' : JSON.stringify(readiness)));
  const broker = 'redis: appendonly=no: a crash loses everything since the last snapshot';
  const undurable = await serveIntake({ durable: false, broker_answers: true, broker });
  const others = await Promise.all(
    [
      { durable: false, broker_answers: false, broker: 'does not answer' },
      { durable: true, broker_answers: true, broker: 'redis: appendonly=yes' },
      { stuck_queues: [] },
    ].map(serveIntake),
  );
  const terminal = collectingTerminal('table');
  writeStatus(terminal, await readStatus([undurable, undurable, ...others]));
  expect(terminal.lines.slice(7).filter((line) => !line.startsWith('stuck'))).toEqual([
    'what         value  meaning',
    `not durable  2      ${broker}`,
  ]);
});

test.each([404, 200])(
  'a web server that is not a process of Sluice is not called ready, even if it answers %i',
  async (status) => {
    // Like the proxy in front, which hides the operators' pages.
    const url = await serve((_, response) =>
      response.writeHead(status).end('<html>nothing here</html>'),
    );
    const terminal = collectingTerminal('table');
    expect(writeStatus(terminal, await readStatus([url]))).toBe(false);
    expect(terminal.lines[1]).toMatch(/ not ready$/);
    expect(terminal.lines[2]).toBe(
      `${url}: /readyz answers ${status}, but not as a process of Sluice does; is this its own address, not the address of a proxy?`,
    );
  },
);

test('for a process that does not answer, the status prints only that line', async () => {
  const terminal = collectingTerminal('table');
  const url = await serve((_, response) => response.destroy());
  expect(writeStatus(terminal, await readStatus([url]))).toBe(false);
  expect(terminal.lines.slice(1)).toEqual([expect.stringMatching(/^http.* does not answer$/)]);
});

test('the status shows a process with its role, version and age, and a failing webhook with its name and a command', async () => {
  const url = await serveMetrics(
    [
      'sluice_build_info{version="1.2.3",service="worker"} 1',
      'process_start_time_seconds{service="worker"} 1000',
    ].join('\n'),
  );
  const nowMs = 1_000_000 + 3 * 3_600_000;
  const terminal = collectingTerminal('table', { now: () => nowMs });
  const head = {
    ...{ sequence: 7, attempts: 4, first_attempt_at: 1_000, status: 500, failure: 'server_error' },
    ...{ failure_meaning: null, failure_message: null, abandons_at: null },
  };
  const state = {
    ...{ state: 'failing' as const, disabled_at: null, disabled_by: null, sending: false },
    ...{ unfinished_count: 3, next_probe_at: null, last_delivered_at: null, head },
  };
  const shards = [
    { shard: 0, waiting: 0, oldest_age_ms: null, stuck: false },
    { shard: 1, waiting: 5, oldest_age_ms: 900, stuck: true },
  ];
  const details = { failing_webhooks: [{ id: 2, name: 'shop', state }], shards };
  expect(writeStatus(terminal, await readStatus([url]), details)).toBe(true);
  const text = terminal.lines.join('\n');
  expect(terminal.lines[1]).toMatch(/^http\S+ +worker +1\.2\.3 +3 h +ready$/);
  expect(text).toMatch(/^webhook 2, shop: Delivery 7 gets 500 since .*\(4 tries\)/m);
  expect(text).toContain(
    'sluice webhooks show 2; then webhooks probe 2, or webhooks skip 2 --sequence 7\n',
  );
  expect(terminal.lines.slice(-2)).toEqual([
    'shard  waiting  oldest_age_ms  stuck',
    '1      5        900            yes',
  ]);
});

/** A process that is ready and has these metrics. */
const serveMetrics = (page: string): Promise<string> =>
  serve(({ url }, response) => response.end(url === '/metrics' ? page : '{"ready":true}'));

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
