/**
 * A stateful stand-in for the payment provider.
 *
 * The payment provider's official SDK talks to it over HTTP. `npm start` buys from it, and tests break it on purpose.
 * It owns no rule of ours; it does the part of the payment provider's documentation that `simulator-routes.ts` has.
 *
 * Beside `/v1` there is `/simulator`: faults, the clock, the sending of events, and the record of charges, which is
 * every attempt to take money that was ever made.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { portTaken } from '@sluice/platform/process/port-taken';
import { Stripe } from 'stripe';
import { AnswerStore, type Answer } from './engine/simulator-answers.ts';
import { answerControl, type SimulatorControls } from './simulator-controls.ts';
import { startEventPump, type EventTreatment } from './engine/simulator-events.ts';
import { FaultPlan } from './engine/simulator-faults.ts';
import { settleLatePayments } from './objects/simulator-late-payments.ts';
import { renewSubscriptions } from './objects/simulator-renewals.ts';
import { formOf, parseForm, ProviderRefusal } from './engine/simulator-request.ts';
import { answerPaymentPage } from './simulator-payment-page.ts';
import { findRoute } from './simulator-routes.ts';
import { SimulatorState } from './engine/simulator-state.ts';

export interface SimulatorOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** SQLite. If absent, its objects are forgotten with the process. */
  readonly file?: string | undefined;
  /** Address for events. If absent, events are not sent. */
  readonly webhookUrl?: string | undefined;
  readonly webhookSecret: string;
  /** Its prices and coupons are known to the payment provider. */
  readonly catalogue: Catalogue;
  readonly now: () => number;
  readonly random: () => number;
}

export interface Simulator extends SimulatorControls {
  readonly port: number;
  close(): Promise<void>;
}

const BODY_SIZE_BYTES_MAX = 1024 * 1024;
const RENEWAL_INTERVAL_MS = 1_000;

/** @throws AppError PORT_TAKEN */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const state = new SimulatorState(options);
  seed(state, options.catalogue);
  const faults = new FaultPlan(options.random);
  const answers = new AnswerStore(state);
  const treatment: EventTreatment = { isHeld: false, duplicateCount: 0, delayMsMax: 0 };
  const stripe = new Stripe('sk_test_simulator');
  const pump = startEventPump({
    state,
    endpoint: options.webhookUrl,
    sign: (payload) =>
      stripe.webhooks.generateTestHeaderString({
        payload,
        secret: options.webhookSecret,
        timestamp: state.nowSeconds(),
      }),
    random: options.random,
    treatment,
  });
  const controls: SimulatorControls = { state, faults, treatment };

  const server = createServer((request, response) => {
    readBody(request)
      .then((text) => respond(request, response, text))
      .catch((error: unknown) => {
        if (response.headersSent) return;
        const refusal =
          error instanceof ProviderRefusal
            ? error
            : new ProviderRefusal(500, 'api_error', 'The simulator failed.');
        send(response, { status: refusal.status, body: refusal.body() });
      });
  });

  async function respond(
    request: IncomingMessage,
    response: ServerResponse,
    text: string,
  ): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://simulator');
    const method = request.method ?? 'GET';
    const page = answerPaymentPage(state, method, url.pathname);
    if (page) {
      response.writeHead(page.status, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'; form-action 'self'",
      });
      response.end(page.html);
      return;
    }
    if (url.pathname.startsWith('/simulator/') || url.pathname === '/readyz') {
      send(response, answerControl(controls, method, url.pathname, text));
      return;
    }
    if (!/^(bearer|basic) ./i.test(request.headers.authorization ?? ''))
      throw new ProviderRefusal(401, 'invalid_request_error', 'You did not provide an API key.');
    const fault = faults.take(method, url.pathname);
    if (fault?.kind === 'conflict')
      throw new ProviderRefusal(
        409,
        'invalid_request_error',
        'Another request holds this object.',
        {
          code: 'lock_timeout',
        },
      );
    if (fault?.kind === 'rate_limit')
      throw new ProviderRefusal(429, 'invalid_request_error', 'Too many requests.', {
        code: 'rate_limit',
      });
    if (fault?.kind === 'timeout') return;
    if (fault?.kind === 'reset') return void request.socket.destroy();

    const key = method === 'GET' ? undefined : request.headers['idempotency-key'];
    const asked = `${method} ${url.pathname} ${text}`;
    if (typeof key === 'string') {
      const kept = answers.begin(key, asked);
      if (kept) return send(response, kept, { 'idempotent-replayed': 'true' });
    }
    const isFailing = fault?.kind === 'error' || fault?.kind === 'error_after';
    const failure: Answer = {
      status: 500,
      body: { error: { type: 'api_error', message: 'An unexpected error occurred.' } },
    };
    const answer = fault?.kind === 'error' ? failure : carryOut(method, url, text);
    if (fault?.kind === 'slow') await (fault.until ?? sleep(fault.delayMs ?? 1_000));
    const isBegun = answer.status !== 404;
    if (typeof key === 'string')
      answers.finish(key, asked, isFailing ? failure : isBegun ? answer : undefined);
    if (fault?.kind === 'timeout_after') return;
    if (fault?.kind === 'reset_after') return void request.socket.destroy();
    send(response, isFailing ? failure : answer);
  }

  function carryOut(method: string, url: URL, text: string): Answer {
    const route = findRoute(method, url.pathname);
    const body = parseForm(text === '' ? url.search.slice(1) : text);
    try {
      if (!route)
        throw new ProviderRefusal(
          404,
          'invalid_request_error',
          `The simulator has no ${method} ${url.pathname}.`,
        );
      const expand = Object.values(formOf(body['expand'])).map(String);
      return { status: 200, body: route.handler({ state, id: route.id, body, expand }) };
    } catch (error) {
      if (error instanceof ProviderRefusal) return { status: error.status, body: error.body() };
      throw error;
    }
  }

  await new Promise<void>((resolve, reject) => {
    const { host, port } = options;
    server.once('error', (error) => reject(portTaken({ owner: 'SIMULATOR', host, port }, error)));
    server.listen(port, host, resolve);
  });
  const renewals = setInterval(() => {
    settleLatePayments(state);
    renewSubscriptions(state);
  }, RENEWAL_INTERVAL_MS);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  state.origin = `http://${options.host}:${port}`;
  return {
    ...controls,
    port,
    async close() {
      clearInterval(renewals);
      server.close();
      server.closeAllConnections();
      await pump.stop();
      state.close();
    },
  };
}

function send(
  response: ServerResponse,
  answer: Answer,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(answer.status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(answer.body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request) {
    sizeBytes += (chunk as Buffer).length;
    if (sizeBytes > BODY_SIZE_BYTES_MAX)
      throw new ProviderRefusal(413, 'invalid_request_error', 'The body is too large.');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function seed(state: SimulatorState, catalogue: Catalogue): void {
  const prices = [
    ...catalogue.plans.map((plan) => ({ ...plan, id: plan.priceId })),
    ...catalogue.addons.map((addon) => ({ ...addon, id: addon.sku })),
  ];
  for (const price of prices) {
    state.save('price', {
      id: price.id,
      object: 'price',
      active: !price.isRetired,
      product: `prod_${price.id}`,
      currency: catalogue.currency,
      unit_amount: price.amount,
      type: 'recurring',
      recurring: { interval: price.interval, interval_count: 1 },
    });
  }
  for (const coupon of catalogue.coupons) {
    state.save('coupon', {
      id: coupon.code,
      object: 'coupon',
      name: coupon.name,
      percent_off: coupon.percentOff,
      amount_off: coupon.amountOff,
      currency: coupon.amountOff === null ? null : catalogue.currency,
      duration: coupon.duration,
      duration_in_months: coupon.durationMonths,
      max_redemptions: coupon.redemptionCountMax,
      times_redeemed: state.get('coupon', coupon.code)?.['times_redeemed'] ?? 0,
      valid: true,
    });
  }
}
