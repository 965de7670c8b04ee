/** The live tail across processes, on either broker: intake and worker publish, the API shows. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

const TRIES_MAX = 3;

interface Tail {
  readonly text: () => string;
  readonly lines: (kind: string) => Record<string, unknown>[];
  readonly close: () => void;
}

describe.each(['redis', 'postgres'] as const)('with the broker on %s', (broker) => {
  let fleet: Fleet;
  let receiver: Server;

  beforeAll(async () => {
    fleet = await startFleet(broker);
    receiver = createServer(
      (request, response) => void request.resume().on('end', () => response.end()),
    );
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    await fleet.app.createReportingWebhook({
      name: 'tail',
      endpoint: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      events: ['customer_unsubscribed'],
    });
  });
  afterAll(async () => {
    receiver.closeAllConnections();
    receiver.close();
    await fleet.close();
  });

  const send = (call: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${fleet.intake.url}/v1/${call}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
        ...headers,
      },
      body: JSON.stringify(body),
    });

  async function openTail(query: string): Promise<Tail> {
    const ending = new AbortController();
    const ask = () =>
      fetch(`${fleet.api.url}/v1/stream${query}`, {
        headers: { authorization: `Bearer ${DEMO.appKey}` },
        signal: ending.signal,
      });
    let answer = await ask();
    // It is refused if a busy API does not reach the channel within two seconds; its reader comes again.
    for (let tries = 1; answer.status === 503 && tries < TRIES_MAX; tries++) {
      expect(await answer.text()).toContain('the live tail cannot reach the other processes');
      answer = await ask();
    }
    expect(answer.status).toBe(200);
    let text = '';
    const read = async (): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const part of answer.body!) text += decoder.decode(part, { stream: true });
    };
    read().catch(() => undefined);
    return {
      text: () => text,
      lines: (kind) =>
        text
          .split('\n\n')
          .filter((block) => block.startsWith(`event: ${kind}\n`))
          .map((block) => JSON.parse(block.slice(block.indexOf('\ndata: ') + 7))),
      close: () => ending.abort(),
    };
  }

  test('the tail shows accepted and refused calls and reports of the worker, also for one person alone', async () => {
    const everything = await openTail('');
    const ofAda = await openTail('?person=ada');
    // Intake and the worker each hear of a reader a moment after it is there.
    let isGone = false;
    await vi.waitFor(async () => {
      isGone = !isGone;
      await send('identify', { userId: 'bob', traits: { unsubscribed: isGone } });
      await send('track', { userId: 'bob', event: 'knock' });
      expect(everything.text()).toContain('"name":"knock"');
      expect(everything.lines('reported').length).toBeGreaterThan(0);
    }, WAIT);

    const strict = { 'x-strict-mode': '1' };
    expect((await send('track', { userId: 'ada' }, strict)).status).toBe(400);
    await send('identify', {
      userId: 'ada',
      traits: { unsubscribed: true, secret: 'not to be shown' },
    });
    await send('track', { userId: 'ada', event: 'bought', messageId: 'm1' });
    await vi.waitFor(() => expect(ofAda.lines('reported')).toHaveLength(1), WAIT);

    // Each process gathers its lines for a moment, so intake's may come after the worker's.
    await vi.waitFor(
      () =>
        expect(ofAda.lines('received')).toMatchObject([
          {
            outcome: 'accepted',
            details: { type: 'person.identify', source: 'pipelines.identify' },
          },
          { name: 'bought', people: [{ id: 'ada' }], details: { event_id: 'm1' } },
        ]),
      WAIT,
    );
    expect(ofAda.lines('reported')).toMatchObject([
      { outcome: 'delivered', name: 'customer_unsubscribed', details: { status: 200, attempt: 1 } },
    ]);
    await vi.waitFor(
      () =>
        expect(everything.lines('refused')).toMatchObject([
          { outcome: 'refused', details: { source: 'pipelines.track', code: 'required' } },
        ]),
      WAIT,
    );
    expect(everything.text()).not.toContain('not to be shown');
    everything.close();
    ofAda.close();
  });

  test('the rows of an import are seen as the worker takes them', async () => {
    const tail = await openTail('');
    await vi.waitFor(async () => {
      await send('track', { userId: 'row-person', event: 'here' });
      expect(tail.text()).toContain('"name":"here"');
    }, WAIT);
    // A file does not make a person.
    await vi.waitFor(() => fleet.customer('row-person'), WAIT);
    const form = new FormData();
    for (const [field, value] of Object.entries({ name: 'rows', type: 'event', identifier: 'id' }))
      form.set(field, value);
    const csv = '_svc_name,_svc_customer_id\nfrom a file,row-person\nfrom a file,row-nobody\n';
    form.set('file', new Blob([csv], { type: 'text/csv' }), 'rows.csv');
    const made = await fetch(`${fleet.api.url}/v1/imports`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEMO.appKey}` },
      body: form,
    });
    expect(made.status).toBe(200);
    await vi.waitFor(() => {
      expect(tail.lines('received')).toContainEqual(
        expect.objectContaining({ name: 'from a file', people: [{ id: 'row-person' }] }),
      );
      expect(tail.lines('refused')).toContainEqual(
        expect.objectContaining({
          details: expect.objectContaining({ source: 'imports', row: 3, code: 'person_not_found' }),
        }),
      );
    }, WAIT);
    tail.close();
  });

  test('the trace of an event leads from the call to the delivery', async () => {
    await send('identify', { userId: 'eve', traits: { email: 'eve@example.com' } });
    await send('track', { userId: 'eve', event: 'looked', messageId: 'traced' });
    await vi.waitFor(async () => {
      const answer = await fetch(`${fleet.api.url}/v1/events/traced/trace`, {
        headers: { authorization: `Bearer ${DEMO.appKey}` },
      });
      expect(answer.status).toBe(200);
      const { trace } = (await answer.json()) as { trace: Record<string, unknown> };
      expect(trace).toMatchObject({
        received: { source: 'pipelines.track' },
        envelope: { operations: expect.any(Number) },
        event: { kind: 'event', name: 'looked' },
      });
    }, WAIT);
  });
});
