/**
 * Staged flushes and the leases of intakes in Postgres (`staged-flushes.ts`): two tables, one row that shows whether new
 * flushes may be added, and functions, so that a report is one statement. `queue-tables.ts` creates them; its trigger
 * reads the row.
 */
import type pg from 'pg';
import { POSTGRES_NOW_MS as NOW } from './hold-back.ts';
import {
  ENDING_COUNT_MAX,
  LOST_AFTER_MS,
  MOVER_LEASE_MS,
  REPORTING_MS_MIN,
  SETTLE_MS,
  unknownIntake,
  type FlushStage,
} from './staged-flushes.ts';

/** @param schema - of the queues. The times are milliseconds of the server's clock. */
export const stageSql = (schema: string): string => `
  create table if not exists ${schema}.sluice_intake (
    intake_id text primary key,
    lease_end_ms double precision not null,
    oldest_ms double precision,
    missed_since_ms double precision
  );
  create table if not exists ${schema}.sluice_staged_flush (
    flush_number bigint generated always as identity primary key,
    at_ms double precision not null,
    flush text not null
  );
  create index if not exists sluice_staged_flush_by_time
    on ${schema}.sluice_staged_flush (at_ms, flush_number);
  create table if not exists ${schema}.sluice_standing (
    is_only boolean primary key default true check (is_only),
    -- Unless a lease has ended: clear, ending or held.
    state text not null default 'held',
    settled_at_ms double precision not null default 0,
    seen_at_ms double precision not null default 0,
    mover_id text,
    mover_until_ms double precision not null default 0
  );
  insert into ${schema}.sluice_standing default values on conflict do nothing;

  -- Tells before what time staged flushes may be moved, and sets whether new ones are added. The caller holds the row.
  create or replace function ${schema}.sluice_judge() returns double precision language plpgsql as $$
  declare
    v_now double precision := ${NOW};
    v_before double precision;
    v_is_open boolean;
    v_intakes bigint;
    v_count bigint;
  begin
    delete from ${schema}.sluice_intake where lease_end_ms < v_now and v_now - missed_since_ms > ${LOST_AFTER_MS};
    update ${schema}.sluice_intake set missed_since_ms = v_now where lease_end_ms < v_now and missed_since_ms is null;
    select min(oldest_ms), count(*), coalesce(bool_and(lease_end_ms >= v_now), true)
      into v_before, v_intakes, v_is_open from ${schema}.sluice_intake;
    v_is_open := v_is_open and v_now >= (select settled_at_ms from ${schema}.sluice_standing);
    select count(*) into v_count
      from (select from ${schema}.sluice_staged_flush limit ${ENDING_COUNT_MAX + 1}) as counted;
    update ${schema}.sluice_standing set state = case
      when not v_is_open or v_before is not null or v_intakes = 0 or v_count > ${ENDING_COUNT_MAX} then 'held'
      when v_count > 0 then 'ending'
      else 'clear' end;
    return case when v_is_open then coalesce(v_before, 'infinity') else 0 end;
  end $$;

  create or replace function ${schema}.sluice_report(
    p_intake text, p_lease_end double precision, p_lease double precision, p_oldest double precision, p_former text[],
    out now_ms double precision, out was_known boolean, out staged_count bigint, out is_movable boolean, out is_clear boolean
  ) language plpgsql as $$
  declare
    v_lease double precision;
    v_is_back boolean;
    v_before double precision;
  begin
    -- A lease that is lost ends early, and nobody is harmed by that.
    if p_oldest is null then perform set_config('synchronous_commit', 'off', true); end if;
    perform from ${schema}.sluice_standing for update;
    now_ms := ${NOW};
    select lease_end_ms into v_lease from ${schema}.sluice_intake where intake_id = p_intake;
    was_known := v_lease is not null;
    delete from ${schema}.sluice_intake where intake_id = any (p_former);
    was_known := was_known or found;
    if p_lease_end is null or p_lease_end >= now_ms then
      v_is_back := v_lease is not null and v_lease < now_ms;
      if (v_is_back or (v_lease is null and p_oldest is not null))
        and (p_oldest is not null or (select count(*) from ${schema}.sluice_intake) > 1) then
        update ${schema}.sluice_standing set settled_at_ms = now_ms + ${SETTLE_MS};
      end if;
      if v_is_back and not exists (select from ${schema}.sluice_intake where lease_end_ms >= now_ms) then
        update ${schema}.sluice_intake i set missed_since_ms =
            least(now_ms, i.missed_since_ms + greatest(0, now_ms - s.seen_at_ms - ${REPORTING_MS_MIN}))
          from ${schema}.sluice_standing s where i.missed_since_ms is not null;
      end if;
      insert into ${schema}.sluice_intake (intake_id, lease_end_ms, oldest_ms)
      values (p_intake, least(p_lease_end, now_ms + p_lease), p_oldest)
      on conflict (intake_id) do update
        set lease_end_ms = excluded.lease_end_ms, oldest_ms = excluded.oldest_ms, missed_since_ms = null;
    end if;
    update ${schema}.sluice_standing set seen_at_ms = now_ms;
    v_before := ${schema}.sluice_judge();
    is_clear := (select state = 'clear' from ${schema}.sluice_standing);
    select count(*) into staged_count from ${schema}.sluice_staged_flush;
    is_movable := exists (select from ${schema}.sluice_staged_flush where at_ms < v_before);
  end $$;

  create or replace function ${schema}.sluice_renew(p_intake text, p_lease_end double precision) returns boolean language plpgsql as $$
  begin
    perform set_config('synchronous_commit', 'off', true);
    update ${schema}.sluice_intake set lease_end_ms = p_lease_end
      where intake_id = p_intake and oldest_ms is null and least(lease_end_ms, p_lease_end) >= ${NOW};
    return found;
  end $$;

  create or replace function ${schema}.sluice_is_empty() returns boolean language plpgsql as $$
  begin
    perform from ${schema}.sluice_standing for update;
    return ${schema}.sluice_judge() = 'infinity' and not exists (select from ${schema}.sluice_staged_flush);
  end $$;

  create or replace function ${schema}.sluice_leave(p_intake text) returns void language plpgsql as $$
  begin
    perform from ${schema}.sluice_standing for update;
    delete from ${schema}.sluice_intake where intake_id = p_intake;
    perform ${schema}.sluice_judge();
  end $$;

  create or replace function ${schema}.sluice_stage(p_at double precision[], p_flush text[]) returns void language plpgsql as $$
  begin
    perform from ${schema}.sluice_standing for update;
    insert into ${schema}.sluice_staged_flush (at_ms, flush)
    select least(f.at_ms, ${NOW}), f.flush from unnest(p_at, p_flush) with ordinality as f (at_ms, flush, place) order by f.place;
    perform ${schema}.sluice_judge();
  end $$;

  create or replace function ${schema}.sluice_take_staged(p_mover text, p_count integer, p_size bigint)
    returns table (flush_number bigint, flush text) language plpgsql as $$
  declare
    v_before double precision;
  begin
    if not exists (select from ${schema}.sluice_staged_flush) then return; end if;
    perform from ${schema}.sluice_standing s
      where s.mover_id is null or s.mover_id = p_mover or s.mover_until_ms < ${NOW} for update;
    if not found then return; end if;
    v_before := ${schema}.sluice_judge();
    update ${schema}.sluice_standing set mover_id = p_mover, mover_until_ms = ${NOW} + ${MOVER_LEASE_MS};
    return query
      select f.flush_number, f.flush from (
        select s.flush_number, s.flush, s.at_ms,
               sum(length(s.flush)) over (order by s.at_ms, s.flush_number) - length(s.flush) as before
          from (select * from ${schema}.sluice_staged_flush t where t.at_ms < v_before
                 order by t.at_ms, t.flush_number limit p_count) s
      ) f where f.before < p_size order by f.at_ms, f.flush_number;
    if not found then update ${schema}.sluice_standing set mover_id = null; end if;
  end $$;

  create or replace function ${schema}.sluice_remove_staged(p_mover text, p_numbers bigint[]) returns void language plpgsql as $$
  begin
    perform from ${schema}.sluice_standing for update;
    delete from ${schema}.sluice_staged_flush where flush_number = any (p_numbers);
    update ${schema}.sluice_standing set mover_id = null where mover_id = p_mover;
    perform ${schema}.sluice_judge();
  end $$;`;

interface StandingRow {
  readonly now_ms: number;
  readonly was_known: boolean;
  readonly staged_count: string;
  readonly is_movable: boolean;
  readonly is_clear: boolean;
}

/** The pool's connections have the schema of the queues as their search path. */
export function postgresStage(pool: pg.Pool): FlushStage {
  return {
    async report({ intakeId, formerIds, leaseEndMs, leaseMs, oldestMs }) {
      const { rows } = await pool.query<StandingRow>(
        'select * from sluice_report($1, $2, $3, $4, $5)',
        [intakeId, leaseEndMs ?? null, leaseMs, oldestMs ?? null, formerIds],
      );
      const [row] = rows as [StandingRow];
      return {
        nowMs: row.now_ms,
        wasKnown: row.was_known,
        stagedCount: Number(row.staged_count),
        isMovable: row.is_movable,
        isClear: row.is_clear,
      };
    },
    async renew(intakeId, leaseEndMs) {
      const { rows } = await pool.query<{ sluice_renew: boolean }>('select sluice_renew($1, $2)', [
        intakeId,
        leaseEndMs,
      ]);
      return rows[0]?.sluice_renew === true;
    },
    async readClock() {
      const { rows } = await pool.query<{ now_ms: string }>(`select ${NOW} as now_ms`);
      return Number(rows[0]?.now_ms);
    },
    async isEmpty() {
      const { rows } = await pool.query<{ sluice_is_empty: boolean }>('select sluice_is_empty()');
      return rows[0]?.sluice_is_empty === true;
    },
    async leave(intakeId) {
      await pool.query('select sluice_leave($1)', [intakeId]);
    },
    async put(flushes, intakeId) {
      const { rowCount } = await pool.query(
        `select sluice_stage($1, $2)
          where $3::text is null or exists (select from sluice_intake where intake_id = $3)`,
        [
          flushes.map(({ atMs }) => atMs ?? null),
          flushes.map(({ text }) => text),
          intakeId ?? null,
        ],
      );
      if (rowCount === 0) throw unknownIntake();
    },
    async take(moverId, countMax, sizeBytesMax) {
      const { rows } = await pool.query<{ flush_number: string; flush: string }>(
        'select * from sluice_take_staged($1, $2, $3)',
        [moverId, countMax, sizeBytesMax],
      );
      return rows.map(({ flush_number: id, flush: text }) => ({ id, text }));
    },
    async remove(moverId, ids) {
      await pool.query('select sluice_remove_staged($1, $2)', [moverId, ids]);
    },
  };
}
