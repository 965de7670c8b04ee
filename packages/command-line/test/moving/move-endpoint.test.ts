/** Moved endpoints that share a name and an address. */
import type { Json, JsonObject } from '@sluice/domain/values/json';
import { expect, test } from 'vitest';
import { moveEndpoint } from '../../src/moving/move-endpoint.ts';
import type { MovedEndpoint } from '../../src/moving/moved-endpoint.ts';

/** The calls of the API that a move makes, over endpoints in memory. */
function apiInMemory() {
  const endpoints: (Record<string, Json> & { readonly id: number })[] = [];
  const request = (method: string, path: string, body?: JsonObject): Promise<JsonObject> => {
    if (path.startsWith('/v1/applications?'))
      return Promise.resolve({ applications: [{ id: 'acme' }] });
    if (method === 'GET')
      return Promise.resolve({ endpoints: endpoints.map((each) => ({ ...each })) });
    if (path.endsWith('/endpoints')) {
      const made = {
        event_names: null,
        attribute_filters: null,
        ...body,
        id: endpoints.length + 1,
      };
      endpoints.push(made);
      return Promise.resolve(made);
    }
    const found = endpoints.find(({ id }) => path === `/v1/reporting_webhooks/${id}`);
    return Promise.resolve(Object.assign(found ?? {}, body));
  };
  return { endpoints, request };
}

const endpointOf = (settings: JsonObject): MovedEndpoint => ({
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

async function moveAll(api: ReturnType<typeof apiInMemory>, source: readonly MovedEndpoint[]) {
  const run = { source, matched: new Set<Json>() };
  const results: string[] = [];
  for (const endpoint of source) results.push(await moveEndpoint(api, endpoint, run));
  return results;
}

test.each([
  ['event names', [PAID, SENT]],
  ['filters', [PAID, OF_EU]],
  ['equal settings', [PAID, PAID]],
])('two endpoints with one name and one address are both moved, once: %s', async (_, source) => {
  const api = apiInMemory();
  expect(await moveAll(api, source)).toEqual(['moved', 'moved']);
  expect(api.endpoints).toMatchObject(
    source.map(({ settings }) => ({ ...settings, disabled: false })),
  );
  expect(await moveAll(api, source)).toEqual(['there already', 'there already']);
});

test('a run that was cut goes on, also if the source lists its endpoints in another order', async () => {
  const api = apiInMemory();
  await moveAll(api, [PAID]);
  expect(await moveAll(api, [SENT, PAID])).toEqual(['moved', 'there already']);
});

test('an endpoint whose event names were changed here is not moved a second time', async () => {
  const api = apiInMemory();
  await moveAll(api, [PAID]);
  Object.assign(api.endpoints[0] ?? {}, { event_names: ['order.paid', 'order.sent'] });
  expect(await moveAll(api, [PAID])).toEqual(['there already']);
});
