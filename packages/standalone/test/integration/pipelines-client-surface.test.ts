/**
 * The whole surface of customerio-node's PipelinesClient, call by call: what is sent, the status
 * that comes back, and the effect read back. A method that the client gains and this table lacks
 * fails the last test.
 */
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
  await surface.preparePeople(['member']);
});
afterAll(() => surface.close());

function viewRow(method: 'page' | 'screen'): ClientRow {
  const name = `a ${method}`;
  return {
    method,
    send: () => surface.pipelines[method]({ userId: 'piped', name }),
    sent: `POST /v1/${method} 200`,
    answer: {},
    effect: async () =>
      expect(await surface.fleet.event('piped', name)).toMatchObject({ type: method }),
  };
}

const PIPELINES_ROWS: readonly ClientRow[] = [
  {
    method: 'identify',
    send: () => surface.pipelines.identify({ userId: 'piped', traits: { plan: 'pro' } }),
    sent: 'POST /v1/identify 200',
    answer: {},
    effect: async () => expect(await surface.attributes('piped')).toMatchObject({ plan: 'pro' }),
  },
  viewRow('page'),
  viewRow('screen'),
  {
    method: 'track',
    send: () =>
      surface.pipelines.track({ userId: 'piped', event: 'paid', properties: { total: 1 } }),
    sent: 'POST /v1/track 200',
    answer: {},
    effect: async () =>
      expect(await surface.fleet.event('piped', 'paid')).toMatchObject({ data: { total: 1 } }),
  },
  {
    method: 'group',
    send: () =>
      surface.pipelines.group({ userId: 'piped', groupId: 'group-1', traits: { name: 'G' } }),
    sent: 'POST /v1/group 200',
    answer: {},
    effect: async () => expect(await surface.fleet.relationships('piped')).toContain('group-1'),
  },
  {
    method: 'alias',
    send: () => surface.pipelines.alias({ userId: 'piped', previousId: 'member' }),
    sent: 'POST /v1/alias 200',
    answer: {},
    effect: async () => {
      expect(await surface.attributes('piped')).toMatchObject({ colour: 'blue' });
      await surface.expectNobody('member');
    },
  },
  {
    method: 'batch',
    send: () => surface.pipelines.batch([{ type: 'track', userId: 'piped', event: 'batched' }]),
    sent: 'POST /v1/batch 200',
    answer: {},
    effect: async () => expect(await surface.fleet.event('piped', 'batched')).toBeDefined(),
  },
];

describe('PipelinesClient', () => {
  test.each(PIPELINES_ROWS)('$method → $sent', async (row) => {
    expect(await surface.exchange(row)).toEqual([row.sent]);
  });

  test('every method of the client is in the table', () => {
    expect(PIPELINES_ROWS.map(({ method }) => method).toSorted()).toEqual(
      methodsOf(PipelinesClient).toSorted(),
    );
  });
});
