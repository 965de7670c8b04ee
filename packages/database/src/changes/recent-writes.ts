/**
 * Latest changes of callers, known to all API processes: a caller reads its own change from the primary until a replica
 * surely has it.
 *
 * A row of `call_counts` for each caller, beside the rows of its calls: unlogged, so a note costs no wait for the disk,
 * and cleared with them after a day. A crash of Postgres forgets the notes; it takes longer than a note is useful.
 * Without a tenant, like those rows.
 */
import { sql } from 'kysely';
import { PREPARED, type Database } from '../connection/connection.ts';

const subjectOf = (caller: string): string => `write ${caller}`;

/**
 * To be called when the change is committed, before it is answered. Index: the primary key.
 *
 * @param caller - of at most some hundred characters, unique over all tenants.
 */
export async function noteWrite(database: Database, caller: string): Promise<void> {
  await sql`
    insert into call_counts (subject, window_started_at, taken) values (${subjectOf(caller)}, now(), 1)
    on conflict (subject) do update
      set window_started_at = greatest(call_counts.window_started_at, excluded.window_started_at),
          taken = call_counts.taken + 1`.execute(database);
}

/** Whether the caller has changed something within so long, by the clock of Postgres. Index: the primary key. */
export async function hasWritten(
  database: Database,
  caller: string,
  withinMs: number,
): Promise<boolean> {
  const { rows } = await sql`${PREPARED}
    select from call_counts
     where subject = ${subjectOf(caller)}
       and window_started_at > now() - ${withinMs}::float8 * interval '1 millisecond'`.execute(
    database,
  );
  return rows.length > 0;
}
