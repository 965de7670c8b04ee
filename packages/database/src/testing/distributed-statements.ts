/**
 * Limits of statements about distributed tables. Citus refuses such a statement, or its result differs from Postgres.
 * For tests: it reads as much of SQL as the statements of this package need, and is no proof.
 */

/** Their result may differ from row to row, so no node can be asked to work it out. */
const VOLATILE =
  /\b(clock_timestamp|timeofday|random|gen_random_uuid|nextval|currval|setval|set_config|txid_current|pg_\w*advisory\w*|pg_sleep)\s*\(/;
const SHARED_LIST = /\bas (?:not )?(?:materialized )?\(\s*select\b/;
const LATE_PARAMETER = /\bon conflict\b(?:(?!\breturning\b)[^;])*\$\d/;
const LOCKS_ROWS = /\bfor (no key update|update|share|key share)\b/;
/** A condition of `inTenantParts`, as `read-statements.ts` writes it, or the tenant itself. */
const IS_OF_ONE_TENANT = /of one tenant \*\/|\benvironment_id\s*=\s*\$1/;
/** Literals may contain anything. Comments are read, because one of them is a directive. */
const LITERAL = /'(?:[^']|'')*'/g;

export type DistributedFault =
  /** A function that is volatile in a statement that writes. */
  | 'volatile-write'
  /** A lock on rows that may be of several tenants. */
  | 'locks-tenants'
  /** A look-up of its own for each row, in rows that may be of several tenants. */
  | 'looks-up-tenants'
  /** A list that is joined with rows of all tenants: it goes to every node, also to one that is away. */
  | 'spans-tenants'
  /** A list in a `with` that a write reads: it goes to every node, also to one that is away. */
  | 'shared-list'
  /** A parameter behind `on conflict`, whose type the node does not know. */
  | 'late-parameter'
  /** A place of a row, which is another row's on another node. */
  | 'ctid'
  /** A lock on a table, which is on every node. */
  | 'table-lock';

/** @param tables - the distributed ones. @returns an empty list if the statement touches no such table. */
export function findDistributedFaults(
  statement: string,
  tables: readonly string[],
): DistributedFault[] {
  const text = statement.toLowerCase().replaceAll(LITERAL, "''");
  const names = `(?:${tables.join('|')})(?:_default)?`;
  const touches = new RegExp(
    `\\b(?:from|join|into|update|using|lock table)\\s+(?:only\\s+)?${names}\\b`,
  );
  if (!touches.test(text)) return [];
  const writes = new RegExp(`\\b(?:insert into|update|delete from)\\s+${names}\\b`);
  const lateral = new RegExp(`\\blateral\\s*\\([^()]*\\bfrom\\s+${names}\\b`);
  const reads = new RegExp(`\\b(?:from|join)\\s+${names}\\b`);
  const isOfOne = IS_OF_ONE_TENANT.test(text);
  const faults: (DistributedFault | false)[] = [
    writes.test(text) && VOLATILE.test(text) && 'volatile-write',
    LOCKS_ROWS.test(text) && !isOfOne && 'locks-tenants',
    lateral.test(text) && !isOfOne && 'looks-up-tenants',
    reads.test(text) && /\bunnest\s*\(/.test(text) && !isOfOne && 'spans-tenants',
    writes.test(text) && SHARED_LIST.test(text) && 'shared-list',
    LATE_PARAMETER.test(text) && 'late-parameter',
    /\bctid\b/.test(text) && 'ctid',
    /\block table\b/.test(text) && 'table-lock',
  ];
  return faults.filter((fault) => fault !== false);
}
