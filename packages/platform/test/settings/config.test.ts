import { describe, expect, test } from 'vitest';
import { flag, parseSettings, platformSettings } from '../../src/settings/config.ts';

describe('an unusable DATABASE_URL is refused with the expected form', () => {
  test.each([
    ['absent', {}, /DATABASE_URL: must be set, as postgres:\/\//],
    ['empty', { DATABASE_URL: '' }, /DATABASE_URL: must be set, as postgres:\/\//],
    [
      'of another database',
      { DATABASE_URL: 'mysql://localhost/sluice' },
      /DATABASE_URL: must be like postgres:\/\//,
    ],
    // As passwords are made: its owner would look for the place at which it got lost.
    [
      'with a password that is not encoded',
      { DATABASE_URL: 'postgres://sluice:se#cret/1@db:5432/sluice' },
      /DATABASE_URL: must be like postgres:\/\/.* percent-encoded$/,
    ],
  ])('%s', (_, environment, message) => {
    expect(() => parseSettings(platformSettings, environment)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: expect.stringMatching(message),
      }),
    );
    expect(() => parseSettings(platformSettings, environment)).not.toThrow(/se#cret/);
  });
});

test('the error for a REDIS_URL with an unencoded password asks for the encoding and hides the password', () => {
  const environment = { REDIS_URL: 'redis://:se#cret/1@redis:6379' };
  expect(() => parseSettings(platformSettings, environment)).toThrow(/REDIS_URL: .*encoded/);
  expect(() => parseSettings(platformSettings, environment)).not.toThrow(/se#cret/);
});

test.each(['4.5', '0', '257', 'four', '1e999'])(
  'the error for SHARD_COUNT=%s has its bounds once',
  (text) => {
    const environment = { DATABASE_URL: 'postgres://db/sluice', SHARD_COUNT: text };
    expect(() => parseSettings(platformSettings, environment)).toThrow(
      /^settings that cannot be used: SHARD_COUNT: must be a whole number from 1 to 256$/,
    );
  },
);

test('every bad setting is listed, not only the first', () => {
  expect(() =>
    parseSettings(platformSettings, { SHARD_COUNT: '0', REDIS_URL: 'http://localhost' }),
  ).toThrow(/^settings that cannot be used: DATABASE_URL: .+; REDIS_URL: .+; SHARD_COUNT: .+$/);
});

test('a switch accepts only true or 1, and false or 0', () => {
  const isOn = flag(false);
  expect(['true', '1', 'false', '0', undefined].map((text) => isOn.parse(text))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(() => isOn.parse('yes')).toThrow('Invalid option');
});
