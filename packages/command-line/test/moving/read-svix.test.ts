/** Endpoints as Svix shows them. */
import type { JsonObject } from '@sluice/domain/values/json';
import { expect, test } from 'vitest';
import type { Moved } from '../../src/moving/moved-endpoint.ts';
import { readSvix } from '../../src/moving/read-svix.ts';

/** The application of one endpoint, and the endpoint. */
async function readOne(endpoint: JsonObject, key: string): Promise<Moved[]> {
  const answers: Readonly<Record<string, JsonObject>> = {
    '/api/v1/app?limit=100': { data: [{ id: 'app_1', name: 'Acme' }], done: true },
    '/api/v1/app/app_1/endpoint?limit=100': {
      data: [{ id: 'ep_1', url: 'https://acme.example/hook', ...endpoint }],
      done: true,
    },
    '/api/v1/app/app_1/endpoint/ep_1/secret': { key },
    '/api/v1/app/app_1/endpoint/ep_1/headers': { headers: {}, sensitive: [] },
  };
  const all: Moved[] = [];
  for await (const each of readSvix((path) => Promise.resolve(answers[path] ?? {}))) all.push(each);
  return all;
}

test('the public key of an endpoint with a key pair is never its secret, and the output names it', async () => {
  expect((await readOne({}, 'whsec_c2VjcmV0'))[1]).toMatchObject({
    secret: 'whsec_c2VjcmV0',
    byHand: [],
  });
  expect((await readOne({}, 'whpk_cHVibGlj'))[1]).toMatchObject({
    secret: undefined,
    byHand: [expect.stringMatching(/^signature: /)],
  });
});

test.each([
  ['without blanks at its ends', ' Orders ', 'Orders'],
  ['the address, if it is blank', ' ', 'https://acme.example/hook'],
  ['of 200 characters', `${'x'.repeat(199)} y`, 'x'.repeat(199)],
  ['without half of a character', `${'x'.repeat(199)}\u{1F600}`, 'x'.repeat(199)],
])('a name is as the API keeps it: %s', async (_, description, name) => {
  expect((await readOne({ description }, 'whsec_c2VjcmV0'))[1]).toMatchObject({
    settings: { name },
  });
});
