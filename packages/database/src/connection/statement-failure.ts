/** Meaning of a statement's failure for its transaction. By SQLSTATE (PostgreSQL manual, appendix A). */

/** Serialisation failure, deadlock: Postgres ended this transaction so that another could go on. */
const SACRIFICED_SQLSTATES: ReadonlySet<string> = new Set(['40001', '40P01']);
/** Those, and a unique violation: another transaction was first. */
const CONFLICT_SQLSTATES: ReadonlySet<string> = new Set([...SACRIFICED_SQLSTATES, '23505']);
/**
 * SQLSTATEs of the classes below that only a value can cause: too long, out of range, a character that text cannot
 * hold, an index entry or a nesting beyond the limits, a check or a column that must be set. Others, 22P02 among them,
 * also come from a database that is at fault.
 */
const VALUE_SQLSTATES: ReadonlySet<string> = new Set([
  '22001',
  '22003',
  '22008',
  '22021',
  '22P05',
  '23502',
  '23514',
  '54000',
  '54001',
]);
/** Data exceptions, integrity constraints, and limits of the program such as the size of an index entry. */
const REFUSED_SQLSTATE = /^(22|23|54)/;

/** Connection exceptions, but for a violation of the protocol, as which a proxy of Postgres reports its own faults. */
const NODE_AWAY_SQLSTATE = /^08(?!P01)/;
/** A server that takes no writes, has no room, starts, stops or cannot use its disk: of any statement and value. */
const SERVER_REFUSES_SQLSTATE = /^(25006|53|57P0[123]|58)/;
/** Line that Citus adds to the context of an error that one of its nodes has reported. */
const REPORTED_BY_NODE = /^while executing command on .+:\d+$/m;

/** True if the same transaction, run again, sees the other one's result and succeeds. */
export function isConflict(error: unknown): boolean {
  return CONFLICT_SQLSTATES.has(sqlStateOf(error));
}

/** Thrown as a serialisation failure. Another transaction changed rows between the read and the lock. */
export class ChangedMeanwhile extends Error {
  readonly code = '40001';
}

/** True if the statement changed no data, and the same call may simply be made again. */
export function isSacrificed(error: unknown): boolean {
  return SACRIFICED_SQLSTATES.has(sqlStateOf(error));
}

/**
 * True if Postgres gave it up, mostly because it took longer than allowed (`statement_timeout`). It changed no data.
 */
export function isCancelled(error: unknown): boolean {
  return sqlStateOf(error) === '57014';
}

/** True if a row like it is there already. */
export function isDuplicate(error: unknown): boolean {
  return sqlStateOf(error) === '23505';
}

/** True if a row like it is there already, by the unique index of this name. */
export function isDuplicateOf(error: unknown, index: string): boolean {
  return isDuplicate(error) && (error as { constraint?: unknown }).constraint === index;
}

/**
 * True if the database could not reach one of its nodes, or the node refuses every write: the server that answers is
 * there, the rows are not. A lost connection to that server itself has no SQLSTATE.
 */
export function isNodeAway(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  return (
    NODE_AWAY_SQLSTATE.test(sqlState) ||
    (SERVER_REFUSES_SQLSTATE.test(sqlState) && isReportedByNode(error))
  );
}

/** True if it is certain that a value is at fault and the statement is not: for another value it would succeed. */
export function isValuesFault(error: unknown): error is Error {
  return error instanceof RangeError || VALUE_SQLSTATES.has(sqlStateOf(error));
}

/**
 * True if a value may be one that a row cannot hold, so that others may succeed without it. A number that
 * does not fit its column is found by us when it is written (`columns.ts`), as a RangeError.
 */
export function isRefusedData(error: unknown): error is Error {
  const sqlState = sqlStateOf(error);
  return (
    error instanceof RangeError ||
    (REFUSED_SQLSTATE.test(sqlState) && !CONFLICT_SQLSTATES.has(sqlState))
  );
}

function isReportedByNode(error: unknown): boolean {
  const { where } = error as { readonly where?: unknown };
  return typeof where === 'string' && REPORTED_BY_NODE.test(where);
}

function sqlStateOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
