/**
 * Identifiers of older rules that no call can name any more.
 *
 * They have blanks at their ends, or are emails that are no address. Their people keep them. An operator finds these
 * people here and merges or deletes them by their svc_id.
 */
import { BLANKS } from '@sluice/domain/value-rules/verdict';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface IrregularIdentifier {
  readonly environmentId: number;
  readonly kind: 'id' | 'email' | 'phone' | 'anonymous_id';
  readonly value: string;
  /** int8, in decimal digits. Null: it belongs to no person, for example a suppressed one. */
  readonly personId: string | null;
}

/**
 * Irregular identifiers of all workspaces after a position, in the order of the primary key. The whole index is read
 * once for all of them: for an operator, rarely. An email needs a name, an `@` and a domain with a dot.
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
