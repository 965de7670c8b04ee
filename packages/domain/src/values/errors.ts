/**
 * Broken promises as errors with one stable code each.
 *
 * Such as a bug, a lost connection, a bad setting. Expected endings are outcomes, not errors.
 * `docs/reference/errors.md` lists this table; a test holds it.
 */

/** code → its meaning and the next action, for operators. */
export const ERRORS = {
  CONFIG_INVALID:
    'A setting is missing or malformed; every problem is listed. Correct it and start again.',
  BROKER_UNAVAILABLE:
    'The broker (Redis, or Postgres if it carries the queues) did not confirm in time. Intake writes calls to the local disk buffer and retries. Check that the broker runs and answers: docs/operations/outages.md.',
  BROKER_FULL:
    'Redis has nearly reached its maxmemory, so intake adds no commit batches; workers need the remaining capacity. Intake writes calls to the local disk buffer and refuses them (503) when that is full. Start workers, or find out why they make no progress: docs/operations/runbooks/events-are-not-processed.md.',
  BROKER_LOGIN_REFUSED:
    'Redis refuses the user or password of REDIS_URL. Correct REDIS_URL (percent-encoded) and restart, or correct the user in Redis; processes retry the login. Meanwhile intake writes calls to the local disk buffer.',
  BROKER_UNDURABLE:
    'The broker can lose confirmed writes, so intake in production does not add calls to it. Redis needs appendonly yes, appendfsync always and maxmemory-policy noeviction; Postgres needs fsync and synchronous_commit on. Correct the settings that the message names, or set INTAKE_ALLOW_UNDURABLE_BROKER=true to accept the loss.',
  ENVELOPE_INVALID:
    'A queued commit batch cannot be read: an incompatible version wrote it. Start workers of that version or of a newer one.',
  MIGRATION_MISMATCH:
    'The database schema is not the one this version needs. Run the migrations, or the newer version.',
  PORT_TAKEN:
    'The process cannot listen on the port, usually because another process does. Stop that process, or choose another port or address in the settings named.',
  DATABASE_UNAVAILABLE:
    'Postgres refuses the user, password or database of DATABASE_URL, or does not answer. Check that Postgres runs and accepts them from this machine, then start again.',
  SESSIONS_SHARED:
    'A pooler between the process and Postgres keeps no sessions (PgBouncer: pool_mode = transaction). Set its mode to session, or let DATABASE_URL lead to Postgres itself, then start again.',
  DATA_DIRECTORY_HELD:
    'Another process uses the data directory. Stop that process, or set SLUICE_DIRECTORY to another folder.',
  DATABASE_START_FAILED:
    'The embedded Postgres did not start. The message has the cause, or the last lines of the log of Postgres. Correct the cause, then start again.',
  SERVICE_START_FAILED:
    'A service ended, or did not become ready, during the start. Its own message follows. Correct the cause, then start again.',
  SPILL_UNREADABLE:
    'A file of the local disk buffer is damaged. Move it aside as the message describes; it may contain acknowledged calls.',
  SECRET_UNREADABLE:
    'A secret in the database cannot be decrypted with the keys of SEALING_KEYS. Start with the encryption keys that encrypted it; if a key is lost, follow docs/operations/runbooks/sealing-key-lost.md.',
  JOB_HUNG:
    'One attempt at a commit batch or a delivery queue took longer than WORKER_HUNG_AFTER_MS. The worker exits and another worker acquires the job; no data are lost. Restart the worker, and find the cause of the wait in the database: docs/operations/runbooks/events-are-not-processed.md.',
  CLOCK_WRONG:
    'The clock of this machine differs from the clock of Postgres by minutes, so the worker refuses to deliver. No data are lost: other workers acquire its work, or the work waits. Synchronize both machines with a time server, then start the worker again.',
  CALL_OVERTAKEN:
    'A call with an Idempotency-Key took more than a minute, and the client repeated it meanwhile. The slow call had no effect; use the answer of the repeated call.',
  COMMAND_FAILED:
    'A command of `sluice` failed. Its message gives the reason; correct it, then run the command again.',
  COMMAND_MISUSED: 'A word of a `sluice` command is wrong. Its message gives the valid ones.',
  COMMAND_NOT_REACHED:
    'A `sluice` command does not reach the service that it needs. Its message gives the address, and the setting that changes it.',
  COMMAND_NOT_ALLOWED:
    'The key of a `sluice` command is unknown, or does not have the right. Its message gives the setting that changes it.',
  BUG: 'An internal invariant was violated. Please report it with the log.',
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
    `this version does not know the operation ${String(type)}; start workers of a newer version`,
  );
}
