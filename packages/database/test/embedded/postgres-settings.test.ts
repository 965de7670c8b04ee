import { postgresSettings } from '@sluice/database/embedded/postgres-settings';
import { expect, test } from 'vitest';

const GIB = 2 ** 30;

test.each([
  [GIB / 4, '128MB'],
  [GIB, '128MB'],
  [4 * GIB + 1, '512MB'],
  [16 * GIB, '2048MB'],
  [1_024 * GIB, '2048MB'],
])('of %d bytes of memory the embedded Postgres takes %s at most', (memoryBytes, expected) => {
  expect(postgresSettings(5_433, 'full', memoryBytes)['shared_buffers']).toBe(expected);
});
