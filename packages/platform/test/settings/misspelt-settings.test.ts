import { expect, test } from 'vitest';
import { findMisspeltSettings } from '../../src/settings/misspelt-settings.ts';

const NAMES = ['API_HOST', 'API_PORT', 'REDIS_URL', 'WEBHOOK_ALLOW_PRIVATE_ADDRESSES'];

test.each([
  ['API_PROT', 'API_PORT'],
  ['REDIS_URI', 'REDIS_URL'],
  ['REDISURL', 'REDIS_URL'],
  ['redis_url', 'REDIS_URL'],
  ['WEBHOOK_ALOW_PRIVATE_ADDRESS', undefined],
  ['WEBHOOK_ALLOW_PRIVATE_ADDRESS', 'WEBHOOK_ALLOW_PRIVATE_ADDRESSES'],
  ['REDIS_URL_OF_MINE', undefined],
  ['PATH', undefined],
  ['', undefined],
])('%s is probably %s', (name, nearestName) => {
  expect(findMisspeltSettings({ [name]: 'x' }, NAMES)).toEqual(
    nearestName === undefined ? [] : [{ name, nearestName }],
  );
});

test('a setting is never a misspelling of its neighbour', () => {
  expect(findMisspeltSettings({ API_HOST: 'a', API_PORT: '1' }, NAMES)).toEqual([]);
});
