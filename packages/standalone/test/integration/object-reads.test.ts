/** Reads of objects through customerio-node's APIClient: what Track wrote is found, shown, and tells its people. */
import { DEMO } from '@sluice/database/seed-demo';
import { APIClient } from 'customerio-node';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startClientSurface, type ClientSurface } from './client-surface.ts';
import { WAIT } from './fleet-under-test.ts';

let surface: ClientSurface;

beforeAll(async () => {
  surface = await startClientSurface();
  await surface.preparePeople(['surface 1']);
  await surface.track.entity({
    type: 'object',
    action: 'identify',
    identifiers: { object_type_id: '3', object_id: 'acme' },
    attributes: { name: 'Acme', seats: 5 },
    cio_relationships: [{ identifiers: { id: 'surface 1' } }],
  });
  await vi.waitFor(expectRelationship, WAIT);
});
const expectRelationship = async () =>
  expect(await surface.fleet.relationships('surface 1')).toContain('acme');
afterAll(() => surface.close());

const app = () => new APIClient(DEMO.appKey, { url: `${surface.fleet.api.url}/v1` });
const acme = { object_type_id: '3', object_id: 'acme' };

test('what Track wrote is found, shown, and tells its people', async () => {
  expect(await app().listObjectTypes()).toMatchObject({
    types: expect.arrayContaining([expect.objectContaining({ id: '3' })]),
  });
  const filter = {
    and: [{ object_attribute: { field: 'seats', operator: 'eq', value: '5', type_id: '3' } }],
  };
  const found = (await app().findObjects('3', filter as never, { limit: 10 })) as {
    identifiers: { cio_object_id: string }[];
  };
  expect(found).toMatchObject({ identifiers: [acme], next: '' });
  const ownId = found.identifiers[0]!.cio_object_id;
  expect(await app().getObjectAttributes('3', ownId, 'cio_object_id')).toMatchObject({
    object: { identifiers: acme, attributes: { name: 'Acme', seats: '5' } },
  });
  expect(await app().getObjectRelationships('3', 'acme', { limit: 10 })).toMatchObject({
    cio_relationships: [{ identifiers: { id: 'surface 1' } }],
    next: '',
  });
  await expect(app().getObjectAttributes('3', 'nothing')).rejects.toMatchObject({
    statusCode: 404,
  });
});
