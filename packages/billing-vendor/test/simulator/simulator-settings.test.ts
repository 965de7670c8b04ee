/** The simulator as a process: each of its settings has the effect that the README describes. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DEFAULT_CATALOGUE } from '../../src/catalogue/default-catalogue.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

function temporaryFile(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-simulator-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, name);
}

async function startSimulator(settings: Record<string, string>) {
  const service = await startServiceUnderTest(MAIN, { SIMULATOR_PORT: '0', ...settings });
  onTestFinished(async () => void (await service.kill('SIGTERM')));
  const call = async (path: string, body?: Record<string, string>, url = service.url) => {
    const answer = await fetch(`${url}${path}`, {
      headers: { authorization: 'Bearer sk_test' },
      ...(body && { method: 'POST', body: new URLSearchParams(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as { id: string } };
  };
  return { service, call };
}

test('it listens on SIMULATOR_HOST only', async () => {
  const { service, call } = await startSimulator({ SIMULATOR_HOST: '127.0.0.2' });
  const there = await call(
    '/v1/customers',
    { email: 'a@b.example' },
    `http://127.0.0.2:${service.port}`,
  );
  expect(there.status).toBe(200);
  await expect(call('/v1/customers', { email: 'a@b.example' })).rejects.toThrow('fetch failed');
});

test.each([
  [true, 200],
  [false, 404],
])('after a restart, with SIMULATOR_FILE %s, a customer is %i', async (isKept, status) => {
  const settings: Record<string, string> = isKept
    ? { SIMULATOR_FILE: temporaryFile('state.sqlite') }
    : {};
  const first = await startSimulator(settings);
  const { id } = (await first.call('/v1/customers', { email: 'a@b.example' })).body;
  await first.service.kill('SIGTERM');
  const second = await startSimulator(settings);
  expect((await second.call(`/v1/customers/${id}`)).status).toBe(status);
});

test('the prices come from BILLING_CATALOGUE_FILE', async () => {
  const file = temporaryFile('catalogue.json');
  const [plan, ...plans] = DEFAULT_CATALOGUE.plans;
  writeFileSync(
    file,
    JSON.stringify({
      ...DEFAULT_CATALOGUE,
      plans: [{ ...plan, price_id: 'price_of_ours' }, ...plans],
    }),
  );
  const { call } = await startSimulator({ BILLING_CATALOGUE_FILE: file });
  expect((await call('/v1/prices/price_of_ours')).status).toBe(200);
  expect((await call(`/v1/prices/${plan?.price_id}`)).status).toBe(404);
});

test('its events go to SIMULATOR_WEBHOOK_URL', async () => {
  const types: string[] = [];
  const receiver = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      types.push((JSON.parse(text) as { type: string }).type);
      response.end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  onTestFinished(() => void receiver.close());
  const { call } = await startSimulator({
    SIMULATOR_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  });
  const customer = await call('/v1/customers', { email: 'a@b.example' });
  await call('/v1/invoices', { customer: customer.body.id });
  await vi.waitFor(() => expect(types).toContain('invoice.created'), 30_000);
});
