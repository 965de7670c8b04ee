/** Refused values of a body, as they are reported to its sender. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readFields, RequestRefused } from '../../src/http/request-validation.ts';

function detailsOf(schema: z.ZodType, value: unknown) {
  try {
    readFields(schema, value);
  } catch (error) {
    if (error instanceof RequestRefused) return error.problem.details ?? [];
    throw error;
  }
  return [];
}

// Each was compared with each: a body of 64 KB held the process for a minute.
test('twenty thousand refused entries are answered soon, with the first twenty', () => {
  const names = Array<string>(20_000).fill('');
  const startedAtMs = performance.now();
  const details = detailsOf(z.object({ names: z.array(z.string().min(1)) }), { names });
  // 0.2 s on a quiet machine.
  expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  expect(details.map(({ field }) => field)).toEqual(
    Array.from({ length: 20 }, (_, index) => `names.${index}`),
  );
});

test('a number beyond several bounds of its field is reported with the tightest alone', () => {
  const schema = z.object({ most: z.int().max(5).max(9), least: z.int().min(3).min(-1) });
  expect(detailsOf(schema, { most: 2 ** 60, least: -(2 ** 60) })).toMatchObject([
    { field: 'most', message: 'most must be at most 5' },
    { field: 'least', message: 'least must be at least 3' },
  ]);
});
