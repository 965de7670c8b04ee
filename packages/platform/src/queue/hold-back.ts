/**
 * Reasons to hold a new flush back: earlier calls may be on the disk of an intake, or staged (`staged-flushes.ts`). The
 * script or statement that adds the flush asks.
 *
 * Used by `queue-commit-batches.ts` and `queue-tables.ts`.
 */

/**
 * Owner of a flush. It is the id of the intake whose new flush it is, or {@link ANYBODY}. A flush of `NOT_NEW` is added in
 * any case.
 *
 * An intake that the broker does not know was missed for too long, and others went on without it. Its flush was perhaps
 * sent before, and waited in the network while the call was answered from the disk. Such a flush is held back: the copy
 * from the disk is marked as late.
 */
export type FlushOwner = string;
/** Of an intake of before this rule, and of no intake. */
export const ANYBODY: FlushOwner = '1';
export const NOT_NEW: FlushOwner = '0';

/** Outcome of a new flush. `held` and `ending` mean that it was not added; after `ending` the way is free in a moment. */
export type AddOutcome = 'added' | 'held' | 'ending';

/**
 * Whether a new flush may be added: `ending`, or the ids of the intakes that must all have a lease, with a space between.
 * If it is empty, no new flush may be added. A lease is a key that expires, so that its renewal is one command.
 */
export const clearKeyOf = (prefix: string): string => `{${prefix}-events}:clear`;

/** Of a script that adds a flush: returns the reason that holds it back, if there is one. `key` and `owner` are Lua. */
export const expectClear = (key: string, owner: string): string => `
  if ${owner} ~= '${NOT_NEW}' then
    local clear = redis.call('GET', ${key}) or ''
    if clear == 'ending' then return clear end
    local leases, isKnown = {}, ${owner} == '${ANYBODY}'
    for id in string.gmatch(clear, '%S+') do
      leases[#leases + 1] = ${key} .. ':' .. id
      if id == ${owner} then isKnown = true end
    end
    if not isKnown or #leases == 0 or redis.call('EXISTS', unpack(leases)) < #leases then return 'held' end
  end`;

/** The SQLSTATE of a flush that is held back; its message is `held` or `ending`. */
export const HELD_BACK = 'SL001';

/** Milliseconds by Postgres' clock. */
export const POSTGRES_NOW_MS = `extract(epoch from clock_timestamp()) * 1000`;

/**
 * Of the trigger that logs batches: holds back a new flush. Its statement is undone then, so the whole flush is left out.
 */
export const expectClearSql = (schema: string): string => `
    if new.data ? 'live' then
      if (select state from ${schema}.sluice_standing) = 'ending' then
        raise exception using errcode = '${HELD_BACK}', message = 'ending';
      end if;
      if (select state from ${schema}.sluice_standing) <> 'clear'
        or exists (select from ${schema}.sluice_intake where lease_end_ms < ${POSTGRES_NOW_MS})
        or jsonb_typeof(new.data -> 'live') = 'string'
          and not exists (select from ${schema}.sluice_intake where intake_id = new.data ->> 'live') then
        raise exception using errcode = '${HELD_BACK}', message = 'held';
      end if;
    end if;`;
