/**
 * Broken promises (a bug, a lost connection, a bad setting) as errors with one stable code each.
 * Expected endings are outcomes, not errors. `docs/errors.md` lists this table; a test holds it.
 */

/** code → what it means and what to do next, for operators. */
export const ERRORS = {
  CONFIG_INVALID:
    'A setting is missing or malformed; every problem is listed. Correct it and start again.',
  BROKER_UNAVAILABLE:
    'The broker (Redis, or Postgres where it carries the queues) did not confirm in time.',
  BROKER_FULL:
    'Redis holds nearly as much as its maxmemory allows, so nothing is added: what is left is for the workers, who make room. Calls go to the spill meanwhile, and are refused (503) once that is full. Start workers, or look why they do not get on: infra/runbooks/events-are-not-processed.md.',
  BROKER_LOGIN_REFUSED:
    'Redis does not take the user or password of REDIS_URL. Correct it there, percent-encoded, and start again; or in Redis, which is asked again all the time. Calls go to the spill meanwhile.',
  ENVELOPE_INVALID: 'A queued envelope cannot be read. It was written by an incompatible version.',
  MIGRATION_MISMATCH:
    'The database schema is not the one this version needs. Run the migrations, or the newer version.',
  PORT_TAKEN:
    'The port cannot be listened on, mostly because another process does. Stop it, or choose another port or address in the settings named.',
  DATABASE_UNAVAILABLE:
    'Postgres lets nobody in with what DATABASE_URL says; a program that does not wait for it says so too of one that does not answer. Look whether it runs and may be reached from here with that user, password and database, then start again.',
  SESSIONS_SHARED:
    'A pooler between the process and Postgres keeps no sessions (PgBouncer: pool_mode = transaction). Set its mode to session, or let DATABASE_URL lead to Postgres itself, then start again.',
  DATA_DIRECTORY_HELD: 'Another process runs on the same data directory. Stop it first.',
  DATABASE_START_FAILED: 'The embedded Postgres did not start; its own words follow.',
  SERVICE_START_FAILED:
    'A service ended, or did not become ready, while everything was being started; its own words follow.',
  SPILL_UNREADABLE:
    'A file of calls kept while the broker was away is damaged. Move it aside as the message says; it may hold acknowledged calls.',
  SECRET_UNREADABLE:
    'A secret in the database does not open with the keys of SEALING_KEYS. Start with the keys that sealed it; where one is lost for good, see infra/runbooks/sealing-key-lost.md.',
  JOB_HUNG:
    'One try of an envelope or of a lane took longer than WORKER_HUNG_AFTER_MS, which nobody can end from outside. The worker ends and another one takes the job up; nothing is lost. Let it be started again, and look at what the database waits for: infra/runbooks/events-are-not-processed.md.',
  CLOCK_WRONG:
    'The clock of this machine and that of Postgres differ by minutes, so a worker must not deliver by it. Nothing is lost: other workers take its work, or it waits. Let both machines follow a time server, then start the worker again.',
  CALL_OVERTAKEN:
    'A call with an Idempotency-Key took more than a minute, and the same call was made anew meanwhile. Nothing was changed by the slow one.',
  COMMAND_FAILED: 'A command of `sluice` could not do what was asked; its line says why.',
  BUG: 'Something that cannot happen did. Please report it with the log.',
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** The one error class thrown by our own code. `message` is for operators and never sent to clients. */
export class AppError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'AppError';
    this.code = code;
  }
}

/** An error's message; for several in one (each address of `localhost` refused), all of their messages. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, name } = error;
  if (message !== '' || !(error instanceof AggregateError)) return message || name;
  return [...new Set(error.errors.map(reasonOf))].join('; ') || name;
}

/** For the end of a `switch` over the operations that this version knows. */
export function unknownOperation(operation: never): AppError {
  const { type } = operation as { type: unknown };
  return new AppError(
    'ENVELOPE_INVALID',
    `this version does not know the operation ${String(type)}`,
  );
}
