/**
 * Identifiers of older rules that no call can name any more: those with blanks at their ends, and emails that are no
 * address. Their people keep them. An operator finds these people here and merges or deletes them by their svc_id.
 */
import { BLANKS } from '@sluice/domain/value-rules/verdict';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface IrregularIdentifier {
  readonly environmentId: number;
  readonly kind: 'id' | 'email' | 'phone' | 'anonymous_id';
  readonly value: string;
  /** int8, in decimal digits. Null: nobody has it, as of a suppressed one. */
  readonly personId: string | null;
}

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
