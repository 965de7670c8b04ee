/** All names of people. They show whether two calls are about one person. */
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { svcId } from '@sluice/domain/values/svc-id';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { inTenantParts, type TenantPart } from '../connection/tenant-statements.ts';

/** A name as a key of operations (`domain/src/operations/operation-keys.ts`). */
export interface OwnedName {
  readonly environmentId: number;
  readonly key: string;
}

interface NameRow extends Omit<OwnedName, 'key'> {
  /** Null: the person has no identifier. */
  readonly key: string | null;
  readonly personId: string;
}

/**
 * Lists every identifier of the people whom operations name by an identifier, a svc_id or a message, the svc_id
 * included. By the primary key of `person_identifiers`, then `person_identifiers_by_person`.
 */
export async function listNamesOfOwners(
  database: DatabaseOrTransaction,
  needs: Pick<StateNeeds, 'identifiers' | 'people' | 'messageDeliveries'>,
): Promise<OwnedName[]> {
  const { identifiers, people, messageDeliveries } = needs;
  const rows = await inTenantParts(database, [identifiers, people, messageDeliveries], (part) =>
    listNamesOfPart(database, part, {
      identifiers: part.only(identifiers),
      people: part.only(people),
      messageDeliveries: part.only(messageDeliveries),
    }),
  );
  const svcIds = new Map(
    rows.map(({ environmentId, personId }) => [
      // A call of another workspace may name the same number.
      `${environmentId} ${personId}`,
      { environmentId, key: svcId(Number(personId)) },
    ]),
  );
  const names = rows.flatMap(({ environmentId, key }) =>
    key === null ? [] : [{ environmentId, key }],
  );
  return [...names, ...svcIds.values()];
}

async function listNamesOfPart(
  database: DatabaseOrTransaction,
  part: TenantPart,
  {
    identifiers,
    people,
    messageDeliveries,
  }: Pick<StateNeeds, 'identifiers' | 'people' | 'messageDeliveries'>,
): Promise<NameRow[]> {
  const { rows } = await sql<NameRow>`${PREPARED}
    with named as (
      select i.environment_id, i.person_id
        from unnest(
          ${integerColumn(identifiers, ({ environmentId }) => environmentId)}::int[],
          ${textColumn(identifiers, ({ kind }) => kind)}::text[],
          ${textColumn(identifiers, ({ value }) => value)}::text[]
        ) as k (environment_id, kind, value) join person_identifiers i using (environment_id, kind, value)
       where i.person_id is not null and ${part.isOf('i')}
      union
      select * from unnest(
        ${integerColumn(people, ({ environmentId }) => environmentId)}::int[],
        ${bigintColumn(people, ({ personId }) => personId)}::bigint[]
      )
      union
      select d.environment_id, d.person_id
        from unnest(
          ${integerColumn(messageDeliveries, ({ environmentId }) => environmentId)}::int[],
          ${textColumn(messageDeliveries, ({ deliveryId }) => deliveryId)}::text[]
        ) as k (environment_id, delivery_id) join message_deliveries d using (environment_id, delivery_id)
       where d.person_id is not null and ${part.isOf('d')}
    )
    select named.environment_id as "environmentId", i.value as key, named.person_id as "personId"
      from named left join person_identifiers i
        on i.environment_id = named.environment_id and i.person_id = named.person_id and ${part.isOf('i')}`.execute(
    database,
  );
  return rows;
}
