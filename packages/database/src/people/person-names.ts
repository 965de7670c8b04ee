/** All names of people. They show whether two calls are about one person. */
import { identifierText, type StoredIdentifierKind } from '@sluice/domain/operations/state-keys';
import type { IdentifierKey, MessageDeliveryKey } from '@sluice/domain/state/loaded-state';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { svcId } from '@sluice/domain/values/svc-id';
import { sql } from 'kysely';
import { bigintColumn, booleanColumn, integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { inTenantParts, type TenantPart } from '../connection/tenant-statements.ts';

/** A name as a key of operations (`domain/src/operations/operation-keys.ts`). */
export interface OwnedName {
  readonly environmentId: number;
  readonly key: string;
}

/** Names of the people whom operations are about. */
export interface NamesOfOwners {
  /** Of all of them, the svc_id included; some twice. */
  readonly names: readonly OwnedName[];
  /** Of the people who may be deleted, suppressed or merged; some twice. */
  readonly released: readonly IdentifierKey[];
  /** Of the same people; some twice. */
  readonly messages: readonly MessageDeliveryKey[];
}

interface NameRow extends Omit<OwnedName, 'key'> {
  /** Null: the person has no identifier. */
  readonly key: string | null;
  readonly personId: string;
  /** Null: the person keeps it. */
  readonly kind?: StoredIdentifierKind | 'message' | null;
}

type Needs = Pick<
  StateNeeds,
  'identifiers' | 'people' | 'messageDeliveries' | 'releasesIdentifiers' | 'releasing'
>;

/**
 * Lists every identifier of the people whom operations name by an identifier, a svc_id or a message. By the primary key
 * of `person_identifiers`, then `person_identifiers_by_person` and, for messages, `message_deliveries_by_person`.
 */
export async function listNamesOfOwners(
  database: DatabaseOrTransaction,
  needs: Needs,
): Promise<NamesOfOwners> {
  const { identifiers, people, messageDeliveries } = needs;
  const rows = await inTenantParts(database, [identifiers, people, messageDeliveries], (part) =>
    listNamesOfPart(database, part, needs),
  );
  const svcIds = new Map<string, OwnedName>();
  const names: OwnedName[] = [];
  const released: IdentifierKey[] = [];
  const messages: MessageDeliveryKey[] = [];
  for (const { environmentId, key, personId, kind = null } of rows) {
    if (kind === 'message') {
      messages.push({ environmentId, deliveryId: key as string });
      continue;
    }
    // A call of another workspace may name the same number.
    svcIds.set(`${environmentId} ${personId}`, { environmentId, key: svcId(Number(personId)) });
    if (key === null) continue;
    names.push({ environmentId, key });
    if (kind !== null) released.push({ environmentId, kind, value: key });
  }
  return { names: [...names, ...svcIds.values()], released, messages };
}

async function listNamesOfPart(
  database: DatabaseOrTransaction,
  part: TenantPart,
  needs: Needs,
): Promise<NameRow[]> {
  const identifiers = part.only(needs.identifiers);
  const people = part.only(needs.people);
  const messageDeliveries = part.only(needs.messageDeliveries);
  const { releasesIdentifiers: isReleasing, releasing } = needs;
  const isReleased = ({ environmentId, kind, value }: IdentifierKey): boolean =>
    isReleasing && releasing.has(identifierText(environmentId, kind, value));
  // Only operations of this kind need the messages, and a person can have many.
  const kinds = sql`, case when named.released then i.kind end as kind`;
  const messages = sql`
    union all
    select m.environment_id, m.delivery_id, m.person_id, 'message'
      from named join message_deliveries m using (environment_id, person_id)
     where named.released and ${part.isOf('m')}`;
  const { rows } = await sql<NameRow>`${PREPARED}
    with named as (
      select i.environment_id, i.person_id, k.released
        from unnest(
          ${integerColumn(identifiers, ({ environmentId }) => environmentId)}::int[],
          ${textColumn(identifiers, ({ kind }) => kind)}::text[],
          ${textColumn(identifiers, ({ value }) => value)}::text[],
          ${booleanColumn(identifiers, isReleased)}::boolean[]
        ) as k (environment_id, kind, value, released) join person_identifiers i using (environment_id, kind, value)
       where i.person_id is not null and ${part.isOf('i')}
      union
      select p.*, ${isReleasing}::boolean from unnest(
        ${integerColumn(people, ({ environmentId }) => environmentId)}::int[],
        ${bigintColumn(people, ({ personId }) => personId)}::bigint[]
      ) as p (environment_id, person_id)
      union
      select d.environment_id, d.person_id, false
        from unnest(
          ${integerColumn(messageDeliveries, ({ environmentId }) => environmentId)}::int[],
          ${textColumn(messageDeliveries, ({ deliveryId }) => deliveryId)}::text[]
        ) as k (environment_id, delivery_id) join message_deliveries d using (environment_id, delivery_id)
       where d.person_id is not null and ${part.isOf('d')}
    )
    select named.environment_id as "environmentId", i.value as key, named.person_id as "personId"${isReleasing ? kinds : sql``}
      from named left join person_identifiers i
        on i.environment_id = named.environment_id and i.person_id = named.person_id and ${part.isOf('i')}${isReleasing ? messages : sql``}`.execute(
    database,
  );
  return rows;
}
