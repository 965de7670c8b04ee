/**
 * The whole surface of the server clients of the Pipelines API.
 *
 * Each call is here with its request, the status of the answer, and the effect read back. A method that a client gains
 * and this table lacks fails a test.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { Analytics as CustomerioAnalytics } from '@customerio/cdp-analytics-node';
import { Analytics as SegmentAnalytics } from '@segment/analytics-node';
import { PipelinesClient } from 'customerio-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  methodsOf,
  startClientSurface,
  type ClientRow,
  type ClientSurface,
} from './client-surface.ts';

let surface: ClientSurface;

beforeAll(async () => {
  surface = await startClientSurface();
  await surface.preparePeople(CLIENTS.map(({ id }) => `former-${id}`));
});
afterAll(() => surface.close());

const METHODS = ['identify', 'page', 'screen', 'track', 'group', 'alias'] as const;
type Method = (typeof METHODS)[number];
type Call = (method: Method, body: object) => Promise<unknown>;

interface Client {
  readonly name: string;
  readonly id: string;
  /** Resolves with the answer once it is there. */
  readonly call: Call;
  readonly sent: (method: Method) => string;
  /** Calls that only this client has. */
  readonly others: readonly ClientRow[];
  readonly methods: readonly string[];
}

/** Methods for the library itself, which send no call: its plugins, its queue. */
const LOCAL_METHODS = ['VERSION', '_dispatch', 'closeAndFlush', 'deregister', 'flush', 'register'];

function library(
  name: string,
  id: string,
  made: typeof CustomerioAnalytics | typeof SegmentAnalytics,
): Client {
  return {
    name,
    id,
    call: (method, body) =>
      new Promise((resolve, reject) => {
        const analytics = new made({
          writeKey: DEMO.writeKey,
          host: surface.fleet.intake.url,
          path: '/v1/batch',
          maxEventsInBatch: 1,
        }) as CustomerioAnalytics;
        analytics.on('error', reject);
        analytics[method](body as never, (error) => (error ? reject(error) : resolve({})));
      }),
    sent: () => 'POST /v1/batch 200',
    others: [],
    methods: methodsOf(made).filter((method) => !LOCAL_METHODS.includes(method)),
  };
}

const CLIENTS: readonly Client[] = [
  {
    name: 'customerio-node: PipelinesClient',
    id: 'pipelines',
    call: (method, body) => surface.pipelines[method](body as never),
    sent: (method) => `POST /v1/${method} 200`,
    others: [
      {
        method: 'batch',
        send: () =>
          surface.pipelines.batch([{ type: 'track', userId: 'by-pipelines', event: 'batched' }]),
        sent: 'POST /v1/batch 200',
        answer: {},
        effect: async () =>
          expect(await surface.fleet.event('by-pipelines', 'batched')).toBeDefined(),
      },
    ],
    methods: methodsOf(PipelinesClient),
  },
  library('@customerio/cdp-analytics-node', 'customerio', CustomerioAnalytics),
  library('@segment/analytics-node', 'segment', SegmentAnalytics),
];

function rowsOf({ id, call, sent, others }: Client): ClientRow[] {
  const userId = `by-${id}`;
  const bodies: Record<Method, object> = {
    identify: { traits: { plan: 'pro' } },
    page: { name: 'a page' },
    screen: { name: 'a screen' },
    track: { event: 'paid', properties: { total: 1 } },
    group: { groupId: `group-${id}`, traits: { name: 'G' } },
    alias: { previousId: `former-${id}` },
  };
  const effects: Record<Method, () => Promise<unknown>> = {
    identify: async () => expect(await surface.attributes(userId)).toMatchObject({ plan: 'pro' }),
    page: async () =>
      expect(await surface.fleet.event(userId, 'a page')).toMatchObject({ type: 'page' }),
    screen: async () =>
      expect(await surface.fleet.event(userId, 'a screen')).toMatchObject({ type: 'screen' }),
    track: async () =>
      expect(await surface.fleet.event(userId, 'paid')).toMatchObject({ data: { total: 1 } }),
    group: async () => expect(await surface.fleet.relationships(userId)).toContain(`group-${id}`),
    alias: async () => {
      expect(await surface.attributes(userId)).toMatchObject({ colour: 'blue' });
      await surface.expectNobody(`former-${id}`);
    },
  };
  const rows = METHODS.map((method) => ({
    method,
    send: () => call(method, { userId, ...bodies[method] }),
    sent: sent(method),
    answer: {},
    effect: effects[method],
  }));
  return [...rows, ...others];
}

// In order: a row may use the data of the rows before it.
describe.each(CLIENTS)('$name', (client) => {
  const rows = rowsOf(client);

  test.each(rows)('$method → $sent', async (row) => {
    expect(await surface.exchange(row)).toEqual([row.sent]);
  });

  test('every call of the client is in the table', () => {
    expect(rows.map(({ method }) => method).toSorted()).toEqual(client.methods.toSorted());
  });
});
