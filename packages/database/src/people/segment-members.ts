/** Members of manual segments. Joining twice and leaving twice have no effect, so neither looks first. */
import type { PersonKey, RowChanges, SegmentMemberRow } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts } from '../connection/tenant-statements.ts';

interface StoredMember {
  readonly environmentId: number;
  readonly segmentId: number;
  /** int8, in decimal digits. */
  readonly personId: string;
  readonly addedAt: Date;
}

/** All memberships of these people. By `segment_members_by_person`. */
export async function listSegmentMembersOf(
  database: DatabaseOrTransaction,
  people: readonly PersonKey[],
): Promise<SegmentMemberRow[]> {
  if (people.length === 0) return [];
  const rows = await inTenantParts(database, [people], async (part) => {
    const own = part.only(people);
    const found = await sql<StoredMember>`
      select m.environment_id as "environmentId", m.segment_id as "segmentId", m.person_id as "personId", m.added_at as "addedAt"
      from unnest(
        ${integerColumn(own, (person) => person.environmentId)}::int[],
        ${bigintColumn(own, (person) => person.personId)}::bigint[]
      ) as p (environment_id, person_id)
      join segment_members m using (environment_id, person_id)
      where ${part.isOf('m')}`.execute(database);
    return found.rows;
  });
  return rows.map(({ personId, addedAt, ...row }) => ({
    ...row,
    personId: Number(personId),
    addedAtMs: addedAt.getTime(),
  }));
}

/** Writes people who joined and left. By the primary key. */
export async function writeSegmentMembers(
  transaction: DatabaseOrTransaction,
  { inserted, updated, deleted }: RowChanges<SegmentMemberRow, SegmentMemberRow>,
): Promise<void> {
  if (deleted.length > 0) {
    await forTenantParts(transaction, [deleted], (part) =>
      sql`
        delete from segment_members m using ${memberRows(part.only(deleted))}
        where m.environment_id = f.environment_id and m.segment_id = f.segment_id and m.person_id = f.person_id
          and ${part.isOf('m')}`.execute(transaction),
    );
  }
  const joined = [...inserted, ...updated];
  if (joined.length > 0) {
    await sql`
      insert into segment_members (environment_id, segment_id, person_id, added_at)
      select * from ${memberRows(joined)} order by environment_id, segment_id, person_id
      on conflict (environment_id, segment_id, person_id) do nothing`.execute(transaction);
  }
}

const memberRows = (rows: readonly SegmentMemberRow[]) => sql`
  unnest(
    ${integerColumn(rows, (row) => row.environmentId)}::int[],
    ${integerColumn(rows, (row) => row.segmentId)}::int[],
    ${bigintColumn(rows, (row) => row.personId)}::bigint[],
    ${timestampColumn(rows, (row) => row.addedAtMs)}::timestamptz[]
  ) as f (environment_id, segment_id, person_id, added_at)`;
