/** Answers to calls with many problems. */
import type { Issue } from '@sluice/domain/operations/issue';
import { expect, test } from 'vitest';
import { routes, type Call } from '../../src/calls/calls.ts';
import { answerOf } from '../../src/http/answer.ts';

const batch = routes.find(({ pattern }) => pattern === '/v2/batch')?.call as Call;

interface Body {
  readonly errors: readonly { readonly batch_index?: number; readonly field: string }[];
}
const errorsOf = (issues: readonly Issue[]) => {
  const { body } = answerOf(batch, { outcome: 'rejected', issues });
  return (JSON.parse(body) as Body).errors;
};

// In 50 MB for a sender of 60 KB, which it need not read.
test('an answer names every refused item, and all problems of the first ones alone', () => {
  const issues = Array.from({ length: 2_500 * 20 }, (_, at): Issue => {
    const batchIndex = Math.floor(at / 20);
    return { code: 'invalid', field: `k${at % 20}`, message: 'is wrong', batchIndex };
  });
  const errors = errorsOf(issues);
  expect(errors).toHaveLength(1_000 + 2_450);
  expect(new Set(errors.map(({ batch_index: index }) => index)).size).toBe(2_500);
  expect(errors.slice(1_000).every(({ field }) => field === 'k0')).toBe(true);
});

test('an answer with a few problems has all of them', () => {
  const issues = Array.from({ length: 20 }, (_, at): Issue => ({
    code: 'invalid',
    field: `k${at}`,
    message: 'is wrong',
  }));
  expect(errorsOf(issues)).toHaveLength(20);
});
