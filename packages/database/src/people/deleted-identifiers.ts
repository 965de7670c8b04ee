/**
 * Identifiers that people lost, for 30 days.
 *
 * They lost them by a deletion, a suppression, a merge or a change. Only late calls look at them, which waited in the
 * disk buffer of an intake or in the dead-letter table (`domain/src/state/replayed-calls.ts`).
 */
import type {
  DeletedIdentifier,
  IdentifierKey,
  PersonKey,
} from '@sluice/domain/state/loaded-state';
import { heirIn, type OwnerEnds } from '@sluice/domain/state/names/name-ends';
import { deletedKeysOf, ownersWhoMayBeThere } from '@sluice/domain/state/replayed-calls';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { sql } from 'kysely';
import {
  integerColumn,
  jsonColumn,
  jsonTextColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { ChangedMeanwhile } from '../connection/statement-failure.ts';
import { inTenantParts } from '../connection/tenant-statements.ts';
import { lockIdentifiers } from './person-identifiers.ts';

/**
 * About ninety ends of ownership. If a name has more, all but the last are left out, with a mark. A late call of that
 * time changes no person, and is an issue.
 *
 * Neither number nor mark is a parameter: Citus sends a parameter behind `on conflict` to the node without its type. It
 * refuses functions there that depend on settings, so the time is counted from a constant, and texts are joined.
 */
const HAS_MANY_OWNERS = sql`octet_length(r.owners::text) > 6000`;
/**
 * The mark is the domain's (`forgottenUntil`), with the time of the last end that is left out. The end that is kept can be
 * an earlier one, of a late deletion.
 */
const FORGOTTEN_ENDS = sql`('{"forgotten": ' ||
  floor(extract(epoch from r.deleted_at - timestamptz '1970-01-01 00:00:00+00') * 1000)::bigint::text || '}')::jsonb`;

/**
 * Identifiers and people that were deleted, with the people whose the identifiers were, and whom those became by merges.
 * By the primary key.
 */
async function listDeletedIdentifiers(
  database: DatabaseOrTransaction,
  identifiers: readonly IdentifierKey[],
  people: readonly PersonKey[],
): Promise<DeletedIdentifier[]> {
  const found: DeletedIdentifier[] = [];
  const asked = new Set<string>();
  let keys = deletedKeysOf(identifiers, people);
  while (keys.length > 0) {
    const rows = await listWithOwners(database, keys);
    found.push(...rows);
    const heirs = rows.flatMap(({ environmentId, owners }) => {
      const personId = heirIn(owners);
      return personId === undefined ? [] : [{ environmentId, personId }];
    });
    const next = heirs.filter((heir) => !asked.has(personText(heir)));
    for (const heir of next) asked.add(personText(heir));
    keys = deletedKeysOf([], next);
  }
  return found;
}

/** Adds the former owners of names to the needs of late calls. Their rows are needed if they are there. */
export async function withFormerOwners(
  database: DatabaseOrTransaction,
  needs: StateNeeds,
): Promise<StateNeeds> {
  if (!needs.hasReplayed) return needs;
  const remembered = await listDeletedIdentifiers(database, needs.identifiers, needs.people);
  const owners = ownersWhoMayBeThere(remembered);
  return owners.length === 0 ? needs : { ...needs, people: [...needs.people, ...owners] };
}

/**
 * As {@link withFormerOwners}, and locks the names first. So other transactions end no ownership of them meanwhile. The
 * other names of the owners are locked later, out of order; a deadlock is a conflict like any other.
 */
export async function holdOwners(
  transaction: DatabaseOrTransaction,
  needs: StateNeeds,
): Promise<StateNeeds> {
  if (!needs.hasReplayed) return needs;
  await lockIdentifiers(transaction, needs.identifiers);
  return withFormerOwners(transaction, needs);
}

/**
 * As {@link listDeletedIdentifiers}, once the rows of the people are locked: a merge that committed before has perhaps made
 * a further person the owner of a name.
 *
 * @throws ChangedMeanwhile if a former owner is not among the needed people.
 */
export async function listHeldOwners(
  transaction: DatabaseOrTransaction,
  { hasReplayed, identifiers, people }: StateNeeds,
): Promise<DeletedIdentifier[]> {
  if (!hasReplayed) return [];
  const remembered = await listDeletedIdentifiers(transaction, identifiers, people);
  const needed = new Set(people.map(personText));
  if (ownersWhoMayBeThere(remembered).some((owner) => !needed.has(personText(owner))))
    throw new ChangedMeanwhile('a former owner of a name was merged meanwhile');
  return remembered;
}

interface StoredEnds extends Omit<DeletedIdentifier, 'deletedAtMs' | 'owners'> {
  readonly deletedAt: Date;
  readonly owners: Readonly<Record<string, number>> | null;
}

const personText = ({ environmentId, personId }: PersonKey): string =>
  `${environmentId} ${personId}`;

async function listWithOwners(
  database: DatabaseOrTransaction,
  keys: ReturnType<typeof deletedKeysOf>,
): Promise<DeletedIdentifier[]> {
  const rows = await inTenantParts(database, [keys], async (part) => {
    const own = part.only(keys);
    const found = await sql<StoredEnds>`
      with named as (
        select d.*
          from unnest(
            ${integerColumn(own, (key) => key.environmentId)}::int[],
            ${textColumn(own, (key) => key.kind)}::text[],
            ${textColumn(own, (key) => key.value)}::text[]
          ) as k (environment_id, kind, value)
          join deleted_identifiers d using (environment_id, kind, value)
         where ${part.isOf('d')}
      ), numbers as (
        select distinct n.environment_id, split_part(o.owner, ' ', 1) as value
          from named n, jsonb_object_keys(n.owners) as o (owner)
      )
      select environment_id as "environmentId", kind, value, deleted_at as "deletedAt", owners, names
        from (select * from named
              union all
              select d.* from numbers n
                join deleted_identifiers d
                  on d.environment_id = n.environment_id and d.kind = 'svc_id' and d.value = n.value
               where ${part.isOf('d')}) as r`.execute(database);
    return found.rows;
  });
  return rows.map(({ deletedAt, owners, ...key }) => ({
    ...key,
    deletedAtMs: deletedAt.getTime(),
    owners: owners && new Map(Object.entries(owners)),
  }));
}

const textOfEnds = (owners: OwnerEnds): string =>
  `{${Array.from(owners, ([end, untilMs]) => `${JSON.stringify(end)}:${untilMs}`).join(',')}}`;

/** Remembers identifiers; of one that was deleted before, the later deletion. By the primary key. */
export async function rememberDeletedIdentifiers(
  transaction: DatabaseOrTransaction,
  deleted: readonly DeletedIdentifier[],
): Promise<void> {
  if (deleted.length === 0) return;
  await sql`
    insert into deleted_identifiers as r (environment_id, kind, value, deleted_at, owners, names)
    select * from unnest(
      ${integerColumn(deleted, (row) => row.environmentId)}::int[],
      ${textColumn(deleted, (row) => row.kind)}::text[],
      ${textColumn(deleted, (row) => row.value)}::text[],
      ${timestampColumn(deleted, (row) => row.deletedAtMs)}::timestamptz[],
      ${jsonTextColumn(deleted, (row) => row.owners && textOfEnds(row.owners))}::jsonb[],
      ${jsonColumn(deleted, (row) => row.names)}::jsonb[]
    ) as d (environment_id, kind, value, deleted_at, owners, names)
    order by environment_id, kind collate "C", value collate "C"
    on conflict (environment_id, kind, value)
      do update set deleted_at = greatest(r.deleted_at, excluded.deleted_at),
        owners = case when ${HAS_MANY_OWNERS} then excluded.owners || ${FORGOTTEN_ENDS}
                      else coalesce(r.owners, '{}') || excluded.owners end,
        names = case when excluded.names is null then r.names
                     else coalesce(r.names, '{}') || excluded.names end`.execute(transaction);
}

/**
 * Forgets the ones from before a time. By `deleted_identifiers_by_time`. @returns their number; `limit` means that
 * there may be more.
 */
export async function forgetDeletedIdentifiers(
  database: DatabaseOrTransaction,
  before: Date,
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from deleted_identifiers where (environment_id, kind, value) in (
      select environment_id, kind, value from deleted_identifiers where deleted_at < ${before} limit ${limit}
    )`.execute(database);
  return Number(numAffectedRows);
}
