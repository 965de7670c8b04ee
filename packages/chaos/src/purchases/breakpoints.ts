/**
 * Holds a process at a moment that only the database can see: just before its statement is carried out. Triggers wait
 * there or leave a note. They are made only in the database of a chaos run, and the process does not know them.
 *
 * A statement that waits is ended with its process, as when the machine is gone: otherwise Postgres, which learns of a
 * dead client late, would carry it out after all.
 */
import type { Database } from '@sluice/database/connection/connection';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';

const POLL_INTERVAL_MS = 3;

/** Call once for a database. */
export async function installBreakpoints(database: Database): Promise<void> {
  await sql`create table held_points (point text primary key)`.execute(database);
  await sql`create table passed_points (point text)`.execute(database);
  // Named by their argument, with the row's step if it has one. Each look is a snapshot of its own.
  await sql`
    create function hold_point() returns trigger language plpgsql as $$
    declare here text := concat_ws(':', tg_argv[0], to_jsonb(new) ->> 'step');
    begin
      while exists (select from held_points where point = here) loop
        perform pg_sleep(0.003);
      end loop;
      return new;
    end $$`.execute(database);
  await sql`
    create function tell_point() returns trigger language plpgsql as $$
    begin
      insert into passed_points values (concat_ws(':', tg_argv[0], to_jsonb(new) ->> 'step'));
      return null;
    end $$`.execute(database);
  const isRecord = `old.state = 'intent' and new.state <> 'intent'`;
  const isEnd = `old.status = 'pending' and new.status <> 'pending'`;
  for (const [moment, change, condition] of [
    ['before-intent', 'before insert on run_steps', 'true'],
    ['before-record', 'before update on run_steps', isRecord],
    ['after-record', 'after update on run_steps', isRecord],
    ['before-start', 'before insert on runs', 'true'],
    ['after-start', 'after insert on runs', 'true'],
    ['before-end', 'before update on runs', isEnd],
    ['after-end', 'after update on runs', isEnd],
    ['before-event', 'before insert on vendor_events', 'true'],
    ['after-event', 'after insert on vendor_events', 'true'],
  ] as const) {
    const what = moment.startsWith('before') ? 'hold_point' : 'tell_point';
    await sql
      .raw(
        `create trigger "${moment}" ${change} for each row when (${condition}) execute function ${what}('${moment}')`,
      )
      .execute(database);
  }
}

/** From now on `before-…` waits there. */
export async function setBreakpoint(database: Database, point: string): Promise<void> {
  await sql`delete from passed_points`.execute(database);
  await sql`insert into held_points values (${point})`.execute(database);
}

/** Resolves as soon as a statement waits at the point, or has been committed past an `after-…`. */
export async function waitForBreakpoint(
  database: Database,
  point: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { rows } = point.startsWith('before')
      ? await sql`${WAITING}`.execute(database)
      : await sql`select from passed_points where point = ${point}`.execute(database);
    if (rows.length > 0) return;
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Call when the process is dead: ends its waiting statement too, and no later statement waits. */
export async function clearBreakpoint(database: Database): Promise<void> {
  await sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where pid in (select pid from (${WAITING}) as waiting)`.execute(database);
  await sql`delete from held_points`.execute(database);
}

const WAITING = sql`
  select pid from pg_stat_activity
   where datname = current_database() and wait_event = 'PgSleep'`;
