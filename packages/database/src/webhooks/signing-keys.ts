/**
 * The keys that webhooks sign with, as they are stored: encrypted. This file cannot decrypt them.
 *
 *   one key ──rotate──▶ key + next, which signs beside it ──promote, or `next_signs_from`──▶ one key
 *                          └──cancel──▶ one key, the old one
 *
 * The time of a promotion is data, so that every process promotes at the same moment; `promoteDue…` only clears the key
 * away that is used no more. Statements about one webhook find it by the primary key (environment_id, webhook_id); the
 * statement about the installation names its own index.
 *
 * `encrypted-secrets.ts` finds all of them when the installation's own key is replaced.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface SigningKeys {
  readonly signingKey: string;
  readonly madeAt: Date;
  readonly next:
    | { readonly signingKey: string; readonly madeAt: Date; readonly signsFrom: Date }
    | undefined;
}

interface Row {
  readonly signingKey: string;
  readonly madeAt: Date;
  readonly nextSigningKey: string | null;
  readonly nextMadeAt: Date | null;
  readonly nextSignsFrom: Date | null;
}

const COLUMNS = sql`
  signing_key as "signingKey", signing_key_made_at as "madeAt", next_signing_key as "nextSigningKey",
  next_signing_key_made_at as "nextMadeAt", next_signs_from as "nextSignsFrom"`;

const NO_NEXT = sql`
  next_signing_key = null, next_signing_key_made_at = null, next_signs_from = null`;
const NEXT_IS_KEY = sql`
  signing_key = next_signing_key, signing_key_made_at = next_signing_key_made_at, ${NO_NEXT}`;

const isWebhook = ({ environmentId, webhookId }: LaneKey) =>
  sql`environment_id = ${environmentId} and webhook_id = ${webhookId} and feed_name is null and deleted_at is null`;

/** The keys of a webhook as they count at `nowMs`; undefined if there is no such webhook. */
export async function findSigningKeys(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  nowMs: number,
): Promise<SigningKeys | undefined> {
  const { rows } = await sql<Row>`
    select ${COLUMNS} from webhooks where ${isWebhook(lane)}`.execute(database);
  const [row] = rows;
  return row && keysOf(row, nowMs);
}

export type KeyChange =
  /**
   * `mustWake`: something is to be sent, with the present keys, and a failing lane probes now. Wake it after the
   * commit.
   */
  | { readonly outcome: 'changed'; readonly keys: SigningKeys; readonly mustWake: boolean }
  /** A rotation is in progress. For a call that ends one: no rotation is. */
  | { readonly outcome: 'not_now' }
  | { readonly outcome: 'not_found' };

export interface KeyRotation {
  /** The next key. */
  readonly signingKey: string;
  /** From this time on, which may be now, it is the only key. Each worker compares a future time with its own clock. */
  readonly signsFromMs: number;
}

/** Adds the next key; one that signs from now on takes the place of the old one, which no clock brings back. */
export function startRotation(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  rotation: KeyRotation,
  nowMs: number,
): Promise<KeyChange> {
  const now = new Date(nowMs);
  const keys =
    rotation.signsFromMs <= nowMs
      ? sql`signing_key = ${rotation.signingKey}, signing_key_made_at = ${now}, ${NO_NEXT}`
      : // The next key of a rotation that is over is promoted in the same statement.
        sql`
           signing_key = coalesce(next_signing_key, signing_key),
           signing_key_made_at = coalesce(next_signing_key_made_at, signing_key_made_at),
           next_signing_key = ${rotation.signingKey}, next_signing_key_made_at = ${now},
           next_signs_from = ${new Date(rotation.signsFromMs)}`;
  const isNone = sql`(next_signs_from is null or next_signs_from <= ${now})`;
  return changeKeys(database, lane, keys, isNone, nowMs);
}

/**
 * Ends a rotation now: the next key is the key, and the old one signs no more.
 *
 * @param stored - of the old one. If another is stored, the outcome is `not_now`.
 */
export function promoteSigningKey(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  nowMs: number,
  stored?: string,
): Promise<KeyChange> {
  const isUnderWay = sql`next_signs_from > ${new Date(nowMs)} and ${stored ?? sql`signing_key`} = signing_key`;
  return changeKeys(database, lane, NEXT_IS_KEY, isUnderWay, nowMs);
}

/**
 * Ends a rotation without it: the next key is forgotten.
 *
 * @param stored - of the next key. If another is stored, the outcome is `not_now`.
 */
export function cancelRotation(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  nowMs: number,
  stored?: string,
): Promise<KeyChange> {
  const isUnderWay = sql`next_signs_from > ${new Date(nowMs)} and ${stored ?? sql`next_signing_key`} = next_signing_key`;
  return changeKeys(database, lane, NO_NEXT, isUnderWay, nowMs);
}

/** Puts a key in the place of the one that is stored, at once; `not_now` if it was changed meanwhile, or a rotation is under way. */
export function replaceSigningKey(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  { stored, sealed: encrypted }: { readonly stored: string; readonly sealed: string },
  nowMs: number,
): Promise<KeyChange> {
  const key = sql`signing_key = ${encrypted}, signing_key_made_at = ${new Date(nowMs)}`;
  const isUnchanged = sql`signing_key = ${stored} and next_signing_key is null`;
  return changeKeys(database, lane, key, isUnchanged, nowMs);
}

/** Forgets the old key of each rotation that is over, and lets failing lanes probe; by `webhooks_rotating`. */
export async function promoteDueSigningKeys(
  database: DatabaseOrTransaction,
  nowMs: number,
): Promise<void> {
  await sql`
    with changed as (
      update webhooks set ${NEXT_IS_KEY}, endpoint_version = endpoint_version + 1
       where next_signs_from <= ${new Date(nowMs)}
      returning environment_id, webhook_id, endpoint_version
    ), locked as (
      -- In the order of their key, as everywhere.
      select lanes.environment_id, lanes.webhook_id, changed.endpoint_version
        from lanes join changed using (environment_id, webhook_id)
       order by environment_id, webhook_id
         for no key update of lanes
    )
    update lanes set ${probesNow(sql`locked`, nowMs)}
      from locked
     where lanes.environment_id = locked.environment_id and lanes.webhook_id = locked.webhook_id`.execute(
    database,
  );
}

/**
 * Columns of a lane whose webhook signs otherwise from now on: an endpoint that refused the old key may take the new one,
 * so its hour is over, as after a change of the endpoint.
 */
const probesNow = (changed: RawBuilder<unknown>, nowMs: number) => sql`
  endpoint_version = ${changed}.endpoint_version,
  next_probe_at = case when next_probe_at is null then null else least(next_probe_at, ${new Date(nowMs)}) end`;

/** Sets columns of one webhook; `not_now` if the condition does not hold. */
async function changeKeys(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  columns: RawBuilder<unknown>,
  condition: RawBuilder<unknown>,
  nowMs: number,
): Promise<KeyChange> {
  const { rows } = await sql<Row & { mustWake: boolean }>`
    with changed as (
      update webhooks set ${columns}, endpoint_version = endpoint_version + 1
       where ${isWebhook(lane)} and ${condition}
      returning *
    ), lane as (
      update lanes set ${probesNow(sql`changed`, nowMs)}
        from changed
       where lanes.environment_id = changed.environment_id and lanes.webhook_id = changed.webhook_id
      returning lanes.webhook_id, not is_paused and last_sequence > cursor_sequence as must_wake
    )
    select ${COLUMNS}, must_wake as "mustWake" from changed join lane using (webhook_id)`.execute(
    database,
  );
  const [row] = rows;
  if (row) return { outcome: 'changed', keys: keysOf(row, nowMs), mustWake: row.mustWake };
  const found = await findSigningKeys(database, lane, nowMs);
  return { outcome: found ? 'not_now' : 'not_found' };
}

function keysOf(row: Row, nowMs: number): SigningKeys {
  const { nextSigningKey, nextMadeAt, nextSignsFrom } = row;
  if (nextSigningKey === null || nextMadeAt === null || nextSignsFrom === null) {
    return { signingKey: row.signingKey, madeAt: row.madeAt, next: undefined };
  }
  const next = { signingKey: nextSigningKey, madeAt: nextMadeAt, signsFrom: nextSignsFrom };
  return nextSignsFrom.getTime() <= nowMs
    ? { signingKey: next.signingKey, madeAt: next.madeAt, next: undefined }
    : { signingKey: row.signingKey, madeAt: row.madeAt, next };
}
