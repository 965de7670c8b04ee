import { expect, test } from 'vitest';
import { databaseUnavailable } from '../src/database-away.ts';

// `localhost` has two addresses on most machines, and Node's error of both has no words of its own.
test('where several addresses refuse, the message says what each of them does', () => {
  const cause = new AggregateError([
    new Error('connect ECONNREFUSED ::1:5432'),
    new Error('connect ECONNREFUSED 127.0.0.1:5432'),
  ]);
  expect(databaseUnavailable(cause)).toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining(
      'says: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432; look',
    ),
    cause,
  });
});
