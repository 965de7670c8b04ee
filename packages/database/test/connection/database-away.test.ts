import pg from 'pg';
import { expect, test } from 'vitest';
import { databaseUnavailable, isWorthWaitingFor } from '../../src/connection/database-away.ts';

// `localhost` has two addresses on most machines, and Node's error of both has no words of its own.
test('if several addresses refuse, the message has the error of each address', () => {
  const errors = [
    new Error('connect ECONNREFUSED ::1:5432'),
    new Error('connect ECONNREFUSED 127.0.0.1:5432'),
  ];
  // As Node makes it: with the code of the first.
  const cause = Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' });
  expect(databaseUnavailable(cause)).toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining(
      'DATABASE_URL (connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432); check',
    ),
    cause,
  });
});

const answer = (code: string, message: string) =>
  Object.assign(new pg.DatabaseError(message, message.length, 'error'), { code });
const failure = (code: string) => Object.assign(new Error(`connect ${code}`), { code });

test.each([
  failure('ECONNREFUSED'),
  failure('ECONNRESET'),
  failure('ETIMEDOUT'),
  failure('ENETUNREACH'),
  // The name of a database that is not started yet, for example of a container.
  failure('ENOTFOUND'),
  failure('EAI_AGAIN'),
  new Error('timeout expired'),
  new Error('Postgres did not answer in 5000 ms'),
  new Error('Connection terminated unexpectedly'),
  answer('57P03', 'the database system is starting up'),
  answer('57P01', 'terminating connection due to administrator command'),
  answer('53300', 'sorry, too many clients already'),
  answer('25006', 'cannot execute INSERT in a read-only transaction'),
  // PgBouncer in front of one that is away.
  answer('08P01', 'server login has been failing, try again later (server_login_retry)'),
  answer('08P01', 'query_wait_timeout'),
  answer('08P01', 'pgbouncer cannot connect to server'),
])('a start waits if the problem may pass by itself: $message', (error) => {
  expect(databaseUnavailable(error).message).toMatch(/^Postgres does not answer at /);
  expect(isWorthWaitingFor(error)).toBe(true);
  expect(isWorthWaitingFor(databaseUnavailable(error))).toBe(true);
});

test.each([
  answer('28P01', 'password authentication failed for user "sluice"'),
  answer('28000', 'no pg_hba.conf entry for host "10.0.0.1"'),
  answer('3D000', 'database "sluice" does not exist'),
  answer('42501', 'permission denied for schema public'),
  // The driver's own: no password, no TLS on the other side, a certificate that is not trusted.
  new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
  new Error('The server does not support SSL connections'),
  failure('SELF_SIGNED_CERT_IN_CHAIN'),
  // PgBouncer's own no, and Postgres' to it.
  answer('08P01', 'no such user: sluice'),
  answer('08P01', 'unsupported startup parameter: idle_in_transaction_session_timeout'),
  answer(
    '08P01',
    'server login has been failing, cached error: password authentication failed for user "sluice" (server_login_retry)',
  ),
])('a start ends if a person must correct the settings: $message', (error) => {
  expect(isWorthWaitingFor(error)).toBe(false);
  expect(databaseUnavailable(error).message).toMatch(
    /^Postgres refuses the values of DATABASE_URL \(.*\); correct it,/,
  );
  expect(isWorthWaitingFor(databaseUnavailable(error))).toBe(false);
});
