/**
 * Identifiers that were stored under older rules and that no call names any more as they are: those with blanks at their
 * ends, and emails that are no address. Their people keep them. An operator finds these people here and merges or
 * deletes them by their svc_id.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface IrregularIdentifier {
  readonly environmentId: number;
  readonly kind: 'id' | 'email' | 'phone' | 'anonymous_id';
  readonly value: string;
  /** int8, in decimal digits. Null: nobody has it, as of a suppressed one. */
  readonly personId: string | null;
}

/** What `String.prototype.trim` cuts, which is the rule at the doors (`domain/src/value-rules`). */
const BLANKS =
  '\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';

/**
 * Those of all workspaces behind one, in the order of the primary key, whose whole index is read once for them all: for an
 * operator, rarely. An email without a name, an `@` and a domain with a dot is none.
 */
export async function listIrregularIdentifiers(
  database: DatabaseOrTransaction,
  after: Pick<IrregularIdentifier, 'environmentId' | 'kind' | 'value'> | undefined,
  limit: number,
): Promise<IrregularIdentifier[]> {
  const { environmentId, kind, value } = after ?? { environmentId: -1, kind: '', value: '' };
  const { rows } = await sql<IrregularIdentifier>`
    select environment_id as "environmentId", kind, value, person_id as "personId"
    from person_identifiers
    where (environment_id, kind, value) > (${environmentId}, ${kind}, ${value})
      and (value <> btrim(value, ${BLANKS}) or (kind = 'email' and value !~ '^[^@[:space:]]+@[^@[:space:]]+[.][^@[:space:]]+$'))
    order by environment_id, kind, value
    limit ${limit}`.execute(database);
  return rows;
}
