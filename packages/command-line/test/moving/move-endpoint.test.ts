/** Moved endpoints: each is there once, with its secret. */
import { createApiClient } from '@sluice/client';
import { expect, test } from 'vitest';
import { moveEndpoint } from '../../src/moving/move-endpoint.ts';
import type { MovedEndpoint, MovedSettings } from '../../src/moving/moved-endpoint.ts';

/** The calls of the API that a move makes, over endpoints in memory. */
function apiInMemory() {
  const secrets = new Map<number, string>();
  /** Writes that are taken before the connection is lost. */
  let changesLeft = Infinity;
  const endpoints: (MovedSettings & { readonly id: number })[] = [];
  const answer = (method: string, path: string, body: Partial<MovedSettings>): object => {
    if (path === '/v1/applications') return { applications: [{ id: 'acme' }] };
    if (method === 'GET') return { endpoints };
    if (path === '/v1/applications/acme/endpoints') {
      const all = { event_names: null, attribute_filters: null, ...body } as MovedSettings;
      const made = { ...all, id: endpoints.length + 1 };
      endpoints.push(made);
      return made;
    }
    const [, ofSecret] = /^\/v1\/reporting_webhooks\/(\d+)\/secrets$/.exec(path) ?? [];
    if (ofSecret) secrets.set(Number(ofSecret), (body as { secret: string }).secret);
    const found = endpoints.find(({ id }) => path === `/v1/reporting_webhooks/${id}`);
    return Object.assign(found ?? {}, body);
  };
  const api = createApiClient({
    url: 'http://api.example',
    fetch: async (request) => {
      const body = (await request.text()) || '{}';
      const { pathname } = new URL(request.url);
      if (request.method !== 'GET' && changesLeft-- <= 0) throw new TypeError('cut');
      return Response.json(
        answer(request.method, pathname, JSON.parse(body) as Partial<MovedSettings>),
      );
    },
  });
  const cutAfter = (changes: number): void => void (changesLeft = changes);
  return { endpoints, secrets, api, cutAfter };
}

const endpointOf = (settings: Partial<MovedSettings>): MovedEndpoint => ({
  application: { id: 'acme', name: 'Acme' },
  settings: { name: 'Orders', endpoint: 'https://acme.example/hook', ...settings },
  isDisabled: false,
  secret: undefined,
  byHand: [],
});
const PAID = endpointOf({ event_names: ['order.paid'] });
const SENT = endpointOf({ event_names: ['order.sent'] });
const OF_EU = endpointOf({
  attribute_filters: [{ field: 'data.channel', operator: 'in', values: ['eu'] }],
});

async function moveAll({ api }: ReturnType<typeof apiInMemory>, source: readonly MovedEndpoint[]) {
  const run = { source, matched: new Set<number>() };
  const results: string[] = [];
  for (const endpoint of source) results.push(await moveEndpoint(api, endpoint, run));
  return results;
}

test.each([
  ['event names', [PAID, SENT]],
  ['filters', [PAID, OF_EU]],
  ['equal settings', [PAID, PAID]],
])('two endpoints with one name and one address are both moved, once: %s', async (_, source) => {
  const memory = apiInMemory();
  expect(await moveAll(memory, source)).toEqual(['moved', 'moved']);
  expect(memory.endpoints).toMatchObject(
    source.map(({ settings }) => ({ ...settings, disabled: false })),
  );
  expect(await moveAll(memory, source)).toEqual(['there already', 'there already']);
});

test('a run that was cut goes on, also if the source lists its endpoints in another order', async () => {
  const memory = apiInMemory();
  await moveAll(memory, [PAID]);
  expect(await moveAll(memory, [SENT, PAID])).toEqual(['moved', 'there already']);
});

test('an endpoint whose event names were changed here is not moved a second time', async () => {
  const memory = apiInMemory();
  await moveAll(memory, [PAID]);
  Object.assign(memory.endpoints[0] ?? {}, { event_names: ['order.paid', 'order.sent'] });
  expect(await moveAll(memory, [PAID])).toEqual(['there already']);
});

test.each([
  ['disabled here', false, { disabled: true }],
  ['disabled in the source', true, { disabled: false }],
])('a second run leaves an endpoint that was %s meanwhile as it is', async (_, isOff, change) => {
  const memory = apiInMemory();
  const moved = { ...PAID, secret: 'of its receiver' };
  await moveAll(memory, [moved]);
  Object.assign(memory.endpoints[0] ?? {}, change);
  memory.secrets.set(1, 'rotated here');
  expect(await moveAll(memory, [{ ...moved, isDisabled: isOff }])).toEqual(['there already']);
  expect(memory.endpoints).toMatchObject([change]);
  expect(memory.secrets.get(1)).toBe('rotated here');
});

test.each([
  ['an endpoint that is on', false],
  ['an endpoint that is off', true],
])(
  'a move of %s that was cut off at any call is completed by the next run',
  async (_, isDisabled) => {
    const moved = { ...PAID, isDisabled, secret: 'of its receiver' };
    for (const changes of [0, 1, 2]) {
      const memory = apiInMemory();
      memory.cutAfter(changes);
      await expect(moveAll(memory, [moved])).rejects.toThrow('cut');
      memory.cutAfter(Infinity);
      expect(await moveAll(memory, [moved])).toEqual(['moved']);
      expect(memory.endpoints).toMatchObject([{ name: 'Orders', disabled: isDisabled }]);
      expect(memory.secrets.get(1)).toBe('of its receiver');
    }
  },
);
