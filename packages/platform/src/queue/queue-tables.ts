/**
 * BullMQ's own tables in Postgres, with five changes. Three keep a commit batch from being overtaken, one lowers its cost,
 * and one serves logins without ownership. Beside `queue.ts`, whose queues live there.
 *
 * - **The next job** is claimed with `skip locked`: if another statement holds the row of the first job for a moment (a
 *   confirmation that comes late, the check of stalled jobs), the one behind it is taken. A shard runs one job at a time,
 *   so it gains no time by skipping. Queues with a limit wait for the row instead.
 * - **Putting a job back** reads the owner first and locks the row later. If another statement put the job back in
 *   between, it was put back once more, at the tail. The changed function locks the row as it reads.
 */
import { AppError } from '@sluice/domain/values/errors';
import { runMigrations } from 'bullmq';
import pg from 'pg';
import { expectClearSql } from './hold-back.ts';
import { stageSql } from './staged-on-postgres.ts';

/** BullMQ's tables live in a Postgres schema of their own. */
export const BULLMQ_SCHEMA = 'bullmq';

/**
 * A job whose worker vanished goes back to the head of its queue on Redis; on Postgres it is put at the tail (a new `seq`).
 * The trigger gives it its old place back, and takes the mark of the check of stalled jobs off it.
 */
const KEEP_PLACE_SQL = `
  create or replace function ${BULLMQ_SCHEMA}.sluice_keep_place() returns trigger language plpgsql as $$
  begin
    new.seq := old.seq;
    new.stalled_marked := false;
    return new;
  end $$;
  create or replace trigger sluice_keep_place before update on ${BULLMQ_SCHEMA}.job
    for each row when (old.state = 'active' and new.state = 'waiting' and old.queue like 'events-%')
    execute function ${BULLMQ_SCHEMA}.sluice_keep_place();`;

/**
 * Events of jobs ("completed", "active") are rows and a NOTIFY a job, for listeners, and Sluice has no such listener.
 * Commits that notify wait for one another, in all shards, so small commit batches are faster without them.
 */
const NO_EVENTS_SQL = `
  create or replace function ${BULLMQ_SCHEMA}.publish_event(p_queue text, p_event text, p_data jsonb)
    returns bigint language sql as 'select 0::bigint'`;

/**
 * BullMQ makes a sequence for the ids of each queue when the first job is added. As the owner: a service's login may not
 * make objects in the schema (`database/src/schema/database-roles.ts`).
 */
const JOB_ID_SQL = `
  alter function ${BULLMQ_SCHEMA}.next_job_id(text)
    security definer set search_path = ${BULLMQ_SCHEMA}, pg_temp`;

/** `pending-log.ts`. */
const PENDING_LOG_SQL = `
  create table if not exists ${BULLMQ_SCHEMA}.sluice_pending_batch (
    log_id bigint generated always as identity primary key,
    batch_id text not null,
    shard integer not null,
    flush_id text,
    keys bytea not null
  );
  create or replace function ${BULLMQ_SCHEMA}.sluice_log_batch() returns trigger language plpgsql as $$
  begin
    ${expectClearSql(BULLMQ_SCHEMA)}
    if not exists (select from ${BULLMQ_SCHEMA}.job where queue = new.queue and id = new.id) then
      perform pg_advisory_xact_lock(hashtext('sluice: log of pending batches'));
      insert into ${BULLMQ_SCHEMA}.sluice_pending_batch (batch_id, shard, flush_id, keys)
      values (new.id, substr(new.queue, length('events-') + 1)::integer, (new.data ->> 'flushId') || '/' || coalesce(new.data ->> 'part', '0'),
              decode(new.data ->> 'keys', 'base64'));
    end if;
    -- At once: each copies the whole of it.
    new.data := new.data - array['keys', 'part', 'live'];
    return new;
  end $$;
  create or replace trigger sluice_log_batch before insert on ${BULLMQ_SCHEMA}.job
    for each row when (new.queue like 'events-%' and new.data ? 'keys')
    execute function ${BULLMQ_SCHEMA}.sluice_log_batch();`;

/** A function of BullMQ's that is changed in one place. */
interface Mend {
  readonly name: string;
  /** The replaced part. */
  readonly pattern: RegExp;
  /** Only the replacement has it. */
  readonly mark: string;
  readonly replace: (found: string, mark: string) => string;
}

const MENDS: readonly Mend[] = [
  {
    name: 'move_to_active',
    pattern:
      /SELECT id INTO v_id\s+FROM job\s+WHERE queue = p_queue AND state = 'waiting'\s+ORDER BY priority, seq\s+FOR UPDATE SKIP LOCKED\s+LIMIT 1;/,
    mark: 'IF v_concurrency IS NOT NULL THEN -- in order',
    replace: (claim, mark) =>
      `${mark}\n${claim.replace(' SKIP LOCKED', '')}\nELSE\n${claim}\nEND IF;`,
  },
  {
    name: 'move_active_to_wait',
    pattern: /FROM job WHERE queue = p_queue AND id = p_id;/,
    mark: 'FOR UPDATE; -- as it is now',
    replace: (look, mark) => look.replace(';', ` ${mark}`),
  },
];

/** Creates or upgrades BullMQ's own tables. Concurrent callers wait for one another. */
export async function migrateQueues(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`select pg_advisory_lock(hashtext('sluice: tables of the queues'))`);
    await runMigrations(client, BULLMQ_SCHEMA);
    await client.query(KEEP_PLACE_SQL);
    await client.query(NO_EVENTS_SQL);
    await client.query(JOB_ID_SQL);
    await client.query(stageSql(BULLMQ_SCHEMA));
    await client.query(PENDING_LOG_SQL);
    for (const each of MENDS) await mend(client, each);
  } finally {
    await client.end();
  }
}

async function mend(client: pg.Client, { name, pattern, mark, replace }: Mend): Promise<void> {
  const { rows } = await client.query<{ definition: string }>(
    `select pg_get_functiondef(oid) as definition from pg_proc
      where proname = $1 and pronamespace = '${BULLMQ_SCHEMA}'::regnamespace`,
    [name],
  );
  const definition = rows[0]?.definition ?? '';
  if (definition.includes(mark)) return;
  const found = pattern.exec(definition)?.[0];
  if (found === undefined || rows.length !== 1)
    throw new AppError('BUG', `${name} of BullMQ is not the one that is known`);
  await client.query(definition.replace(found, () => replace(found, mark)));
}
