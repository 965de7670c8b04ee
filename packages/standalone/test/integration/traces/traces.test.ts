/** One event's way as one trace: through the processes that operators run, to a collector that really listens. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { CollectedSpan } from '@sluice/platform/testing/collector-under-test';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WAIT, type Fleet } from '../fleet-under-test.ts';
import {
  callApi,
  identify,
  leaving,
  newSender,
  SLOW,
  WRITE_KEY,
  type Endpoint,
} from './traced-calls.ts';
import { startTracedFleet, type TracedFleet } from './traced-fleet.ts';

describe('with a collector', () => {
  let traced: TracedFleet;
  let collector: TracedFleet['collector'];
  let endpoint: Endpoint;
  let fleet: Fleet;
  let webhookId: number;
  let spansOf: TracedFleet['spansOf'];
  beforeAll(async () => {
    traced = await startTracedFleet();
    ({ collector, endpoint, fleet, webhookId, spansOf } = traced);
  }, SLOW.timeout);
  afterAll(() => traced.close());

  test('one call is one trace, from its sender to the endpoint of its delivery', SLOW, async () => {
    const sender = newSender();
    const { traceparent } = sender;
    expect(await identify(fleet, 'hedy', { traceparent })).toBe(200);
    const path = ['POST /v1/identify', 'send events', 'process events', 'POST {endpoint}'];
    const named = await spansOf(sender.traceId, Object.fromEntries(path.map((name) => [name, 1])));
    const spans = path.flatMap(named);
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([
      sender.spanId,
      ...spans.slice(0, -1).map(({ spanId }) => spanId),
    ]);
    expect(spans.map(({ service }) => service)).toEqual([
      'sluice-intake',
      'sluice-intake',
      'sluice-worker',
      'sluice-worker',
    ]);
    const [call, commit, processing, delivery] = spans;
    expect(call?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/identify',
      'http.response.status_code': 200,
      'sluice.outcome': 'accepted',
    });
    expect(commit?.attributes['messaging.message.id']).toBe(
      processing?.attributes['messaging.message.id'],
    );
    expect(processing).toMatchObject({
      attributes: { 'sluice.outcome': 'applied', 'sluice.operations': 1 },
      events: ['reports logged'],
    });
    expect(delivery?.attributes).toMatchObject({
      'sluice.outcome': 'delivered',
      'http.response.status_code': 200,
      'sluice.event_type': 'customer_unsubscribed',
    });
    // The endpoint can continue the trace; the signed text is beside it.
    expect(endpoint.requests).toHaveLength(1);
    expect(endpoint.requests[0]).toMatchObject({
      traceparent: `00-${sender.traceId}-${delivery?.spanId}-01`,
      'x-svc-signature': expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
  });

  test(
    'a stream is one trace, from its head to the deliveries of all that it brought',
    SLOW,
    async () => {
      const sender = newSender();
      const lines = ['grace', 'alan'].map((id) =>
        JSON.stringify({ type: 'identify', ...leaving(id) }),
      );
      const answer = await fetch(`${fleet.intake.url}/v1/stream?id=of-this-test`, {
        method: 'POST',
        headers: { authorization: WRITE_KEY, traceparent: sender.traceparent },
        body: [...lines, 'no JSON'].join('\n'),
      });
      expect(await answer.text()).toContain('"end":"complete"');
      // Two processes send them, each when it has some.
      const spans = await vi.waitFor(() => {
        const found = collector.spans.filter(({ traceId }) => traceId === sender.traceId);
        const parentOf = ({ parentSpanId }: CollectedSpan) =>
          found.find(({ spanId }) => spanId === parentSpanId);
        const deliveries = found.filter(({ name }) => name === 'POST {endpoint}');
        expect(deliveries).toHaveLength(2);
        for (const delivery of deliveries) {
          const way: string[] = [];
          for (let at = parentOf(delivery); at; at = parentOf(at)) way.push(at.name);
          expect(way).toEqual(['process events', 'send events', 'POST /v1/stream']);
        }
        return found;
      }, WAIT);
      expect(spans.find(({ name }) => name === 'POST /v1/stream')).toMatchObject({
        parentSpanId: sender.spanId,
        isFailed: false,
        attributes: {
          'http.route': '/v1/stream',
          'http.response.status_code': 200,
          'sluice.outcome': 'complete',
          'sluice.lines': 3,
          'sluice.refused_lines': 1,
        },
      });
    },
  );

  test('a stream that is refused, and one whose sender goes away, end as such', SLOW, async () => {
    const refused = newSender();
    const { status } = await fetch(`${fleet.intake.url}/v1/stream`, {
      method: 'POST',
      headers: { traceparent: refused.traceparent },
      body: '{}',
    });
    expect(status).toBe(401);
    const cut = newSender();
    const request = httpRequest(`${fleet.intake.url}/v1/stream`, {
      method: 'POST',
      headers: { authorization: WRITE_KEY, traceparent: cut.traceparent },
    });
    request
      .on('error', () => undefined)
      .write(`${JSON.stringify({ type: 'identify', ...leaving('emmy') })}\n`);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await once(response, 'data');
    response.on('error', () => undefined);
    request.destroy();
    const [first] = (await spansOf(refused.traceId, { 'POST /v1/stream': 1 }))('POST /v1/stream');
    expect(first).toMatchObject({
      attributes: { 'http.response.status_code': 401 },
      isFailed: false,
    });
    const ended = await vi.waitFor(() => {
      const found = collector.spans.find(
        ({ traceId, name }) => traceId === cut.traceId && name === 'POST /v1/stream',
      );
      expect(found).toBeDefined();
      return found;
    }, WAIT);
    expect(ended).toMatchObject({
      attributes: { 'sluice.outcome': 'cut', 'error.type': 'cut', 'sluice.lines': 1 },
      isFailed: true,
    });
  });

  test(
    'an import continues the trace of its call, and its batches store their place in the trace',
    SLOW,
    async () => {
      const sender = newSender();
      const form = new FormData();
      for (const [name, value] of Object.entries({
        name: 'old ones',
        type: 'event',
        identifier: 'id',
      }))
        form.append(name, value);
      const rows = ['_svc_name,_svc_customer_id', 'bought,hedy', 'bought,nobody'];
      form.append('file', new Blob([rows.join('\n')]), 'events.csv');
      const { traceparent } = sender;
      const answer = await callApi(fleet, '/v1/imports', form, { traceparent });
      expect(answer.status).toBe(200);
      const named = await spansOf(sender.traceId, {
        'POST /v1/imports': 1,
        'import file': 1,
        'import rows': 1,
      });
      const spans = ['POST /v1/imports', 'import file', 'import rows'].flatMap(named);
      expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([
        sender.spanId,
        spans[0]?.spanId,
        spans[1]?.spanId,
      ]);
      expect(spans.map(({ service }) => service)).toEqual([
        'sluice-api',
        'sluice-worker',
        'sluice-worker',
      ]);
      expect(spans[1]?.attributes).toMatchObject({ 'sluice.state': 'imported' });
      expect(spans[2]?.attributes).toMatchObject({ 'sluice.rows': 2, 'sluice.outcome': 'written' });
      const { rows: claims } = await sql<{ traceparent: string }>`
      select traceparent from envelopes where envelope_id like 'import-%'`.execute(fleet.database);
      expect(claims).toEqual([{ traceparent: `00-${sender.traceId}-${spans[2]?.spanId}-01` }]);
    },
  );

  test(
    'what a replay sends goes on with the call that asked for it, and names where it was from',
    SLOW,
    async () => {
      const [first, second] = [newSender(), newSender()];
      expect(await identify(fleet, 'rosalind', { traceparent: first.traceparent })).toBe(200);
      const path = ['POST /v1/identify', 'send events', 'process events', 'POST {endpoint}'];
      const before = await spansOf(
        first.traceId,
        Object.fromEntries(path.map((name) => [name, 1])),
      );
      const route = '/v1/reporting_webhooks/:webhook_id/replays';
      await vi.waitFor(async () => {
        // A delivery on its way is no part of a replay until its end is recorded.
        const body = { person: { id: 'rosalind' }, dry_run: true };
        const planned = await callApi(fleet, `/v1/reporting_webhooks/${webhookId}/replays`, body);
        expect(await planned.json()).toMatchObject({ count: 1 });
      }, WAIT);
      const asked = await callApi(
        fleet,
        `/v1/reporting_webhooks/${webhookId}/replays`,
        { person: { id: 'rosalind' } },
        { traceparent: second.traceparent },
      );
      expect(asked.status).toBe(200);
      const after = await spansOf(second.traceId, { [`POST ${route}`]: 1, 'POST {endpoint}': 1 });
      const [call] = after(`POST ${route}`);
      const [sent] = after('POST {endpoint}');
      const [original] = before('POST {endpoint}');
      expect(sent).toMatchObject({
        parentSpanId: call?.spanId,
        links: [before('process events')[0]?.spanId],
        attributes: {
          'sluice.replay_id': expect.any(Number) as number,
          'sluice.sequence': original?.attributes['sluice.sequence'] as number,
          'sluice.event_id': original?.attributes['sluice.event_id'] as string,
        },
      });
      expect(endpoint.requests.at(-1)).toMatchObject({
        traceparent: `00-${second.traceId}-${sent?.spanId}-01`,
      });
    },
  );

  test(
    'requests of the payment provider are children of the call that needs them',
    SLOW,
    async () => {
      const sender = newSender();
      const body = JSON.stringify({ payment_method_id: 'pm_card_visa' });
      const path = `/v1/accounts/${DEMO.invoicedAccountId}/billing/payment_method/default`;
      // The body comes when the head has been taken: it is read in a turn of its own.
      const request = httpRequest(`${fleet.api.url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${DEMO.invoicedAccountToken}`,
          traceparent: sender.traceparent,
          'content-type': 'application/json',
          'content-length': body.length,
          expect: '100-continue',
        },
      });
      await once(request, 'continue');
      request.end(body);
      const [{ statusCode: status }] = (await once(request, 'response')) as [IncomingMessage];
      expect(status).toBe(204);
      const found = await vi.waitFor(() => {
        const spans = collector.spans.filter(({ traceId }) => traceId === sender.traceId);
        const server = spans.find(({ parentSpanId }) => parentSpanId === sender.spanId);
        expect(server?.attributes).toMatchObject({ 'http.response.status_code': 204 });
        return { server, others: spans.filter((span) => span !== server) };
      }, WAIT);
      expect(found.others.map(({ name }) => name)).toContain('POST /v1/customers');
      expect(found.others.map(({ name }) => name)).toContain('POST /v1/customers/{id}');
      for (const span of found.others) {
        expect(span.parentSpanId).toBe(found.server?.spanId);
        expect(span.attributes).toMatchObject({
          'server.address': '127.0.0.1',
          'http.response.status_code': 200,
        });
      }
    },
  );

  test(
    'a call that the API refuses is traced with its status; a probe is not traced',
    SLOW,
    async () => {
      const [refused, unknown, probe] = [newSender(), newSender(), newSender()];
      const ask = (path: string, traceparent: string) =>
        fetch(`${fleet.api.url}${path}`, { headers: { traceparent } });
      await ask('/readyz', probe.traceparent);
      await ask('/v1/customers/hedy%40example.com/attributes', refused.traceparent);
      await ask('/hedy', unknown.traceparent);
      const route = '/v1/customers/:identifier/attributes';
      const [first] = (await spansOf(refused.traceId, { [`GET ${route}`]: 1 }))(`GET ${route}`);
      expect(first?.attributes).toMatchObject({ 'http.response.status_code': 401 });
      const [second] = (await spansOf(unknown.traceId, { GET: 1 }))('GET');
      expect(second?.attributes).toMatchObject({ 'http.response.status_code': 404 });
      expect(collector.spans.some(({ traceId }) => traceId === probe.traceId)).toBe(false);
    },
  );

  test('of all that was sent so far no person, credential or address has reached the collector', () => {
    // Each name has a letter that is no hexadecimal digit: one trace id in 137 has `ada` in it.
    const people = ['hedy', 'grace', 'alan', 'emmy', 'rosalind', 'example.com'];
    const credentials = [DEMO.writeKey, DEMO.signingKey, DEMO.appKey, DEMO.invoicedAccountToken];
    expect(collector.spans.length).toBeGreaterThan(20);
    for (const secret of [...people, ...credentials, endpoint.url])
      expect(collector.text()).not.toContain(secret);
  });
});
