/**
 * Security: two workspaces hold rows of the same numbers and names, because people and objects are counted by
 * workspace. A reader of its own rows gets no row of the other's, though the row that was looked up first was its own.
 */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertEvent, type Tenant } from '../support/inserted-rows.ts';
import { fillPath, keyOf, listOperations, type Operation } from '../support/every-operation.ts';
import { insertOwned, ownedBody } from '../support/tenant-world.ts';

const MARKER = 'belongs-to-b';

let api: ApiUnderTest;
let ownedByA: Readonly<Record<string, string>>;
let ownedByB: Readonly<Record<string, string>>;
beforeAll(async () => {
  api = await startApi();
  ownedByB = await insertOwned(api, api.b, MARKER);
  ownedByA = await insertOwned(api, api.a, 'belongs-to-a');
});
afterAll(() => api.close());

const read = async (
  tenant: Tenant,
  operation: Operation,
  owned: Readonly<Record<string, string>>,
): Promise<string> => {
  const url = fillPath(operation, (name) => owned[name] ?? '1');
  const has = (name: string): boolean => operation.queryParameters.includes(name);
  const query = new URLSearchParams({
    ...(has('email') && { email: `${owned['identifier']}@example.com` }),
    ...(has('credit_type') && { credit_type: 'inbox_previews' }),
  });
  const answer = await api.call(operation.method, `${url}?${query.toString()}`, {
    key: keyOf(operation, tenant),
    ...(operation.takesBody && { body: ownedBody(operation, MARKER) }),
  });
  return answer.body;
};

test('reads by A show only data of A, and the same reads by B show the data of B', async () => {
  const reads = listOperations(api).filter(
    ({ method, path, opensWith }) =>
      opensWith !== 'nothing' && (method === 'GET' || path === '/v1/objects'),
  );
  let telling = 0;
  for (const operation of reads) {
    expect({ operation, body: await read(api.a, operation, ownedByA) }).not.toMatchObject({
      body: expect.stringContaining(MARKER),
    });
    if ((await read(api.b, operation, ownedByB)).includes(MARKER)) telling++;
  }
  expect(telling).toBeGreaterThanOrEqual(15);
});

test('an event whose id another workspace has used too is traced to the own deliveries only', async () => {
  for (const [tenant, marker] of [
    [api.b, MARKER],
    [api.a, 'belongs-to-a'],
  ] as const) {
    const { environmentId } = tenant;
    const occurredAt = '2026-02-28T10:00:00Z';
    await insertEvent(api.database, environmentId, { personId: 41, eventId: 'same', occurredAt });
    const event = { environmentId, eventType: 'email_sent', objectType: 'email' } as const;
    await appendDeliveries(api.database, [
      {
        ...event,
        eventId: `${marker}-caused`,
        causeEventId: 'same',
        metric: 'sent',
        occurredAtMs: 0,
        data: {},
      },
    ]);
  }
  const { trace } = (await api.call('GET', '/v1/events/same/trace')).json();
  expect(trace.deliveries).toMatchObject([{ event_id: 'belongs-to-a-caused' }]);
});
