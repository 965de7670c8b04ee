import { expect, test } from 'vitest';
import {
  invalidRequest,
  PROBLEMS,
  renderProblem,
  type ProblemCode,
} from '../../src/http/problem.ts';
import { expectProblem } from '../support/error-shapes.ts';

const answerOf = (status: number, body: unknown) => ({
  statusCode: status,
  headers: {
    'content-type': 'application/problem+json; charset=utf-8',
    'x-request-id': 'request-1',
    'cache-control': 'no-store',
  },
  body: JSON.stringify(body),
  json: () => body,
});

test.each(Object.keys(PROBLEMS) as ProblemCode[])(
  '%s is readable by every known client',
  (code) => {
    const { status } = PROBLEMS[code];
    expectProblem(
      answerOf(status, renderProblem({ code, message: 'what happened' }, 'request-1')),
      status,
      code,
    );
  },
);

test('several refused values are all in the one line that some clients read', () => {
  const problem = invalidRequest([
    {
      field: 'name',
      reason: 'required',
      message: 'name is required',
      source: { pointer: '/name' },
    },
    {
      field: 'events.1',
      reason: 'unsupported',
      message: 'events.1 is no event',
      source: { pointer: '/events/1' },
    },
  ]);
  const { errors } = expectProblem(
    answerOf(400, renderProblem(problem, 'request-1')),
    400,
    'invalid_request',
  );
  expect(problem.message).toBe('name is required; events.1 is no event');
  expect(errors).toMatchObject([
    { field: 'name', reason: 'required', status: '400', source: { pointer: '/name' } },
    { field: 'events.1', reason: 'unsupported', status: '400', source: { pointer: '/events/1' } },
  ]);
});
