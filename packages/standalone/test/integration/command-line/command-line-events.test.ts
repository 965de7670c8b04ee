/** `sluice` with events, against running services: import, send, tail, trace, listen. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from '../fleet-under-test.ts';
import { runSluice } from '../program-under-test.ts';
import { follow, makeWebhook } from './followed-sluice.ts';

let fleet: Fleet;
beforeAll(async () => void (fleet = await startFleet()));
afterAll(() => fleet.close());

const sluice = (...words: string[]) => runSluice(fleet, words);

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
  const all = await sluice('--json', 'imports', 'create', file, '--identifier', 'id', '--watch');
  expect(all, all.errors).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(all.output)).toMatchObject({
    import: {
      name: 'orders "of" January.csv',
      state: 'imported',
      rows_imported: 500,
      percent: 100,
    },
  });

  // A pipe has no size.
  const pipe = join(folder, 'pipe.csv');
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
  const [piped] = await Promise.all([
    sluice('--json', 'import', pipe, '--identifier', 'id'),
    writeFile(pipe, '_svc_name,_svc_customer_id\nbought,importer\n'),
  ]);
  expect(JSON.parse(piped.output), piped.errors).toMatchObject({ import: { rows_imported: 1 } });

  await writeFile(file, '_svc_name,_svc_customer_id\nbought,nobody\n');
  const failed = await sluice('--json', 'import', file, '--identifier', 'id');
  expect(failed.exitCode).toBe(1);
  const begun = JSON.parse(failed.output) as { import: { id: number; rows_failed: number } };
  expect(begun.import.rows_failed).toBe(1);
  const shown = await sluice('--json', 'imports', 'show', String(begun.import.id), '--watch');
  expect(shown).toMatchObject({ exitCode: 1, output: failed.output });
  const missing = await sluice('import', `${file}.gone`, '--identifier', 'id');
  expect(missing.exitCode).toBe(1);
  expect(missing.errors).toMatch(/cannot be read \(ENOENT.*\); name a file that you may read/);
});

test('send sends the events that it reports; tail and trace show them, and issues shows a faulty call', async () => {
  const tail = follow(fleet, '--json', 'tail', '--name', 'Order Completed');
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

test('a tail goes on after the reader of its notes is gone: `sluice tail 2>&1 > lines | head -1`', async () => {
  const tail = follow(fleet, '--json', 'tail', '--name', 'Order Completed');
  tail.child.stderr.destroy();
  await vi.waitFor(async () => {
    await sluice('send', '--count', '50', '--batch', '50', '--seed', '7');
    expect(tail.lines.length).toBeGreaterThan(0);
  }, WAIT);
});

test('listen separates genuine deliveries from others', async () => {
  const listener = follow(fleet, '--json', 'listen', '--port', '0', '--secret', DEMO.signingKey);
  const url = await vi.waitFor(() => {
    const [, found] = /listening on (\S+);/.exec(listener.notes.join()) ?? [];
    expect(found).toBeDefined();
    return found as string;
  }, WAIT);

  const id = await makeWebhook(fleet, `${url}/hook`);
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

test.each(['reader', 'window'] as const)(
  'listen deletes its webhook after its %s is gone',
  async (gone) => {
    const forwardTo = `${fleet.api.url}/livez`;
    const listener = follow(fleet, 'listen', '--forward-to', forwardTo, '--event', 'event');
    const ended = once(listener.child, 'exit');
    await vi.waitFor(() => expect(listener.notes.join()).toContain('listening on'), WAIT);
    expect((await sluice('webhooks', 'list')).output).toContain('sluice listen');
    if (gone === 'window') listener.child.kill('SIGHUP');
    else {
      // As of `sluice listen | head -1`: the next line meets a closed pipe.
      listener.child.stdout.destroy();
      await sluice('send', '--count', '50', '--batch', '50', '--seed', '11');
    }
    await ended;
    await vi.waitFor(
      async () => expect((await sluice('webhooks', 'list')).output).not.toContain('sluice listen'),
      WAIT,
    );
  },
);
