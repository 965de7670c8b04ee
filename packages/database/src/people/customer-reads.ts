/**
 * Reads of people for the app API: profile, devices, relationships, search. Identifiers are found through
 * `person_identifiers`, as the worker finds them; a suppressed one finds no person.
 */
import type { JsonObject } from '@sluice/domain/values/json';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** `value` is as stored: an email in lower case, a `person_id` in decimal digits. */
export interface PersonKey {
  readonly environmentId: number;
  readonly kind: 'id' | 'email' | 'person_id';
  readonly value: string;
}

export interface PersonProfile {
  /** int8, in decimal digits. */
  readonly personId: string;
  readonly id: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  /** Null: never set. */
  readonly unsubscribed: boolean | null;
  readonly createdAt: Date;
  readonly attributes: JsonObject;
}

const PROFILE_COLUMNS = sql`
  p.person_id as "personId", p.id, p.email, p.phone, p.unsubscribed, p.created_at as "createdAt", p.attributes`;

/** By the primary key of `person_identifiers`, then the primary key of `people`; one row each. */
export async function findPersonProfile(
  database: DatabaseOrTransaction,
  { environmentId, kind, value }: PersonKey,
): Promise<PersonProfile | undefined> {
  const { rows } =
    kind === 'person_id'
      ? await sql<PersonProfile>`
          select ${PROFILE_COLUMNS}
          from people p
          where p.environment_id = ${environmentId} and p.person_id = ${value}::bigint`.execute(
          database,
        )
      : await sql<PersonProfile>`
          select ${PROFILE_COLUMNS}
          from person_identifiers i
          join people p on p.environment_id = i.environment_id and p.person_id = i.person_id
          where i.environment_id = ${environmentId} and i.kind = ${kind} and i.value = ${value}
            and not i.suppressed`.execute(database);
  return rows[0];
}

export interface PersonDevice {
  readonly token: string;
  readonly platform: string;
  readonly lastUsedAt: Date | null;
  readonly attributes: JsonObject;
}

/** Index: the primary key, whose order is the list's. People have a handful. */
export async function listDevices(
  database: DatabaseOrTransaction,
  environmentId: number,
  personId: string,
): Promise<PersonDevice[]> {
  const { rows } = await sql<PersonDevice>`
    select token, platform, last_used_at as "lastUsedAt", attributes
    from devices
    where environment_id = ${environmentId} and person_id = ${personId}::bigint
    order by token`.execute(database);
  return rows;
}

export interface PersonRelationshipRow {
  /** int8, in decimal digits; also the position in the list. */
  readonly objectNumber: string;
  readonly objectTypeId: number;
  readonly objectId: string;
  readonly attributes: JsonObject;
  readonly createdAt: Date;
}

/** By the primary key of `relationships` as a range, then the primary key of `objects` for each row. */
export async function listRelationships(
  database: DatabaseOrTransaction,
  page: {
    readonly environmentId: number;
    readonly personId: string;
    /** Rows after this object number. */
    readonly after: string | undefined;
    readonly limit: number;
  },
): Promise<PersonRelationshipRow[]> {
  const { rows } = await sql<PersonRelationshipRow>`
    select r.object_number as "objectNumber", o.object_type_id as "objectTypeId", o.object_id as "objectId",
           r.attributes, r.created_at as "createdAt"
    from relationships r
    join objects o on o.environment_id = r.environment_id and o.object_number = r.object_number
    where r.environment_id = ${page.environmentId} and r.person_id = ${page.personId}::bigint
      and r.object_number > ${page.after ?? '0'}::bigint
    order by r.object_number
    limit ${page.limit}`.execute(database);
  return rows;
}

export interface FoundPerson {
  /** int8, in decimal digits. */
  readonly personId: string;
  readonly id: string | null;
  readonly email: string | null;
}

const FOUND_COLUMNS = sql`p.person_id as "personId", p.id, p.email`;

/** The latest people, newest first; by the primary key, backwards. @param before - a person's number. */
export async function listLatestPeople(
  database: DatabaseOrTransaction,
  environmentId: number,
  before: string | undefined,
  limit: number,
): Promise<FoundPerson[]> {
  const { rows } = await sql<FoundPerson>`
    select ${FOUND_COLUMNS} from people p
     where p.environment_id = ${environmentId} ${before === undefined ? sql`` : sql`and p.person_id < ${before}::bigint`}
     order by p.person_id desc limit ${limit}`.execute(database);
  return rows;
}

/** Behind each text that begins with it, byte by byte: no text has this character. */
const AFTER_ALL = '\u{10FFFF}';

export interface MatchedPerson extends FoundPerson {
  /** The identifier by which the person was found, as it is compared. */
  readonly value: string;
}

/**
 * In the order of the identifiers of one kind. By ranges of the primary key of `person_identifiers`, then by the
 * primary key of `people`.
 *
 * @param prefix - as it is compared. Emails are in lower case.
 * @param after - the `value` of the last of the page before.
 */
export async function listPeopleByPrefix(
  database: DatabaseOrTransaction,
  environmentId: number,
  kind: 'id' | 'email',
  prefix: string,
  after: string | undefined,
  limit: number,
): Promise<MatchedPerson[]> {
  const { rows } = await sql<MatchedPerson>`
    select ${FOUND_COLUMNS}, i.value
      from person_identifiers i
      join people p on p.environment_id = i.environment_id and p.person_id = i.person_id
     where i.environment_id = ${environmentId} and i.kind = ${kind} and not i.suppressed
       and i.value >= ${prefix} and i.value < ${prefix + AFTER_ALL}
       ${after === undefined ? sql`` : sql`and i.value > ${after}`}
     order by i.value limit ${limit}`.execute(database);
  return rows;
}
