/**
 * The simulator on a free port, behind our adapter.
 *
 * The services have them in the same way.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { readCatalogue } from '../../src/catalogue/read-catalogue.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { createStripeProvider, openStripeClient } from '../../src/stripe/stripe-provider.ts';
import type { PaymentProvider, ProviderResult } from '../../src/port/payment-provider.ts';

export const WEBHOOK_SECRET = 'whsec_test';

export async function startProvider(
  options: { readonly file?: string; readonly webhookUrl?: string } = {},
) {
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: WEBHOOK_SECRET,
    catalogue: readCatalogue(undefined),
    now: Date.now,
    random: Math.random,
    ...options,
  });
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await simulator.close();
  };
  onTestFinished(close);
  const openClient = (timeoutMs: number) =>
    openStripeClient({
      secretKey: 'sk_test_simulator',
      baseUrl: `http://127.0.0.1:${simulator.port}`,
      timeoutMs,
    });
  const stripe = openClient(20_000);
  return {
    simulator,
    stripe,
    provider: createStripeProvider(stripe),
    /** For requests that are never answered. */
    hastyProvider: createStripeProvider(openClient(300)),
    close,
  };
}

/** The value of a call that must succeed. */
export async function ok<Value>(result: Promise<ProviderResult<Value>>): Promise<Value> {
  const settled = await result;
  if (settled.outcome !== 'ok') throw new Error(JSON.stringify(settled));
  return settled.value;
}

export async function newCustomer(
  provider: PaymentProvider,
  card?: string,
  accountId = 7,
): Promise<string> {
  const email = `billing-${accountId}@example.com`;
  const customer = await ok(
    provider.createCustomer({ accountId, name: 'Acme', email }, `customer:${accountId}`),
  );
  if (card !== undefined) await ok(provider.setDefaultCard(customer, card));
  return customer;
}

/** An open invoice of 2,000 cents for one purchase. */
export async function openInvoice(provider: PaymentProvider, customerId: string, runId = 'run_1') {
  const invoice = await ok(
    provider.createInvoice(
      { customerId, accountId: 7, runId, currency: 'usd' },
      `${runId}:invoice:1`,
    ),
  );
  const price = { amount: 2_000, currency: 'usd' };
  const { invoiceId } = invoice;
  await ok(
    provider.addLine(
      { customerId, invoiceId, price, description: '100', runId },
      `${runId}:line:1`,
    ),
  );
  return ok(provider.finalizeInvoice(invoiceId, `${runId}:finalize:1`));
}

/** An endpoint that keeps its requests; `answers` are its statuses in order, then 200. */
export async function startReceiver(answers: number[] = []) {
  const received: { readonly body: string; readonly signature: string }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({
        body: Buffer.concat(chunks).toString('utf8'),
        signature: String(request.headers['stripe-signature']),
      });
      response.writeHead(answers.shift() ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}
