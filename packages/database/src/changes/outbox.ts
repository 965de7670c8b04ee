/**
 * The outbox: messages for other systems, written in the transaction of their change.
 *
 * An entry is due, claimed (due again after a minute, so that the death of a process loses no entry), then done, or
 * postponed for a time that grows. It is sent at least once, and its key lets the receiver take it once. Sent entries
 * are deleted in the end.
 */
import { sql } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

export interface OutboxEntry {
  readonly outboxId: string;
  readonly topic: string;
  /** The fact that it reports. */
  readonly dedupeKey: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly attempt: number;
}

/** Longer than a slow mail server takes, because no other process should send the same meanwhile. */
const CLAIMED_MS = 60_000;
const RETRY_MS_MIN = 5_000;
const RETRY_MS_MAX = 600_000;
/** A sender looks every two seconds; this is longer than one may be away. */
const NEGLECTED_AFTER_MS = 3_600_000;

/** Idempotent: a second entry for the same fact is dropped. Index: the unique key (topic, dedupe_key). */
export async function appendToOutbox(
  database: DatabaseOrTransaction,
  entry: Pick<OutboxEntry, 'topic' | 'dedupeKey' | 'payload'>,
  nowMs: number,
): Promise<void> {
  const now = new Date(nowMs);
  await sql`
    insert into outbox (topic, dedupe_key, payload, created_at, next_attempt_at)
    values (${entry.topic}, ${entry.dedupeKey}, ${JSON.stringify(entry.payload)}::jsonb, ${now}, ${now})
    on conflict (topic, dedupe_key) do nothing`.execute(database);
}

/** Takes due entries, oldest first; no other process gets them until their next attempt is due. Index: `outbox_due`. */
export async function claimOutbox(
  database: DatabaseOrTransaction,
  topics: readonly string[],
  limit: number,
  nowMs: number,
): Promise<OutboxEntry[]> {
  const { rows } = await sql<OutboxEntry>`${PREPARED}
    update outbox o
       set attempt = o.attempt + 1, next_attempt_at = ${new Date(nowMs + CLAIMED_MS)}
      from (select outbox_id from outbox
             where next_attempt_at <= ${new Date(nowMs)} and topic = any(${topics}::text[])
             order by next_attempt_at limit ${limit} for update skip locked) due
     where o.outbox_id = due.outbox_id
    returning o.outbox_id as "outboxId", o.topic, o.dedupe_key as "dedupeKey", o.payload,
              o.created_at as "createdAt", o.attempt`.execute(database);
  return rows;
}

/**
 * It could not be sent: sets the next due time. Unless another process has claimed it meanwhile. Index: the primary
 * key.
 */
export async function postponeOutbox(
  database: DatabaseOrTransaction,
  { outboxId, attempt }: Pick<OutboxEntry, 'outboxId' | 'attempt'>,
  nowMs: number,
): Promise<void> {
  const pauseMs = Math.min(RETRY_MS_MIN * 2 ** (attempt - 1), RETRY_MS_MAX);
  await sql`
    update outbox set next_attempt_at = ${new Date(nowMs + pauseMs)}
     where outbox_id = ${outboxId} and attempt = ${attempt} and next_attempt_at is not null`.execute(
    database,
  );
}

/** The entry is sent; it stays for a time, so that its fact is not sent again. */
export async function finishOutbox(
  database: DatabaseOrTransaction,
  outboxId: string,
): Promise<void> {
  await sql`update outbox set next_attempt_at = null where outbox_id = ${outboxId}`.execute(
    database,
  );
}

/**
 * Time of the oldest entry that was tried and is not sent yet; undefined if there is no such entry. Entries without a
 * configured sender, any more or from the beginning, are left out: they have been due for long, or were never tried.
 * The installation's, for its metrics. Index: `outbox_due`.
 */
export async function findOldestUntold(
  database: DatabaseOrTransaction,
  nowMs: number,
): Promise<Date | undefined> {
  const { rows } = await sql<{ createdAt: Date | null }>`
    select min(created_at) as "createdAt" from outbox
     where next_attempt_at > ${new Date(nowMs - NEGLECTED_AFTER_MS)} and attempt > 0`.execute(
    database,
  );
  return rows[0]?.createdAt ?? undefined;
}

/**
 * Forgets sent entries that are older than a time, the oldest first. Index: `outbox_told`. At most `limit` at a time.
 */
export async function clearOutbox(
  database: DatabaseOrTransaction,
  createdBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    delete from outbox where outbox_id in (
      select outbox_id from outbox
       where next_attempt_at is null and created_at < ${new Date(createdBeforeMs)}
       order by created_at limit ${limit})`.execute(database);
}
