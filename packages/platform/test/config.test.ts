import { describe, expect, test } from 'vitest';
import { parseSettings, platformSettings } from '../src/config.ts';

describe('DATABASE_URL that cannot be used says how one is written', () => {
  test.each([
    ['absent', {}],
    ['empty', { DATABASE_URL: '' }],
    ['of another database', { DATABASE_URL: 'mysql://localhost/sluice' }],
  ])('%s', (_, environment) => {
    expect(() => parseSettings(platformSettings, environment)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: expect.stringMatching(/DATABASE_URL: must be set, as postgres:\/\//),
      }),
    );
  });
});

test('every bad setting is listed, not only the first', () => {
  expect(() =>
    parseSettings(platformSettings, { SHARD_COUNT: '0', REDIS_URL: 'http://localhost' }),
  ).toThrow(/^settings that cannot be used: DATABASE_URL: .+; REDIS_URL: .+; SHARD_COUNT: .+$/);
});
