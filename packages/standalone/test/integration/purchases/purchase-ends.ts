/** Surroundings of a purchase: an invoice that the payment provider makes by itself, and an endpoint of a webhook. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SimulatorState } from '@sluice/billing-vendor/simulator/engine/simulator-state';
import {
  addLine,
  createInvoice,
  finalizeInvoice,
} from '@sluice/billing-vendor/simulator/objects/simulator-invoices';
import { onTestFinished } from 'vitest';

/**
 * Gives back time that was never paid.
 *
 * @returns the invoice's id.
 */
export function finalizeUnusedTime(state: SimulatorState, customer: string): string {
  const { id } = createInvoice(state, {
    customer,
    currency: 'usd',
    metadata: {},
    collectionMethod: 'charge_automatically',
    autoAdvance: false,
    subscription: null,
  });
  addLine(state, state.get('invoice', id)!, {
    amount: -10_001,
    description: 'Unused time',
    metadata: {},
    of: {
      subscriptionId: 'sub_gone',
      itemId: 'si_gone',
      priceId: 'price_premium_month',
      isProration: true,
      start: 0,
      end: 1,
    },
  });
  finalizeInvoice(state, state.get('invoice', id)!);
  return id;
}

/** An endpoint of a webhook, until the test ends. */
export async function startReceiver() {
  const received: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body });
      response.end();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}
