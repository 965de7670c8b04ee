/**
 * Lines of a stream that are committed and acknowledged together.
 *
 * Filled by `take-stream.ts`.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { OperationWriter } from '../groups/operation-writer.ts';
import type { Turns } from '../http/turns.ts';

export interface LineIssue extends Issue {
  readonly line: number;
}

const GROUP_OPERATIONS_MAX = 1_000;
const GROUP_SIZE_BYTES_MAX = 512 * 1024;
/** While single calls come, a group has the fourth part: they wait for the flush that carries it. */
const GROUP_DIVISOR_BESIDE_CALLS = 4;
/** So that one acknowledgement stays small; a line has at most 20. */
const GROUP_ISSUES_MAX = 100;
/** So that a sender of blank lines is answered too, and its cut connection noticed. */
export const GROUP_LINES_MAX = 10_000;

export interface Group {
  /** Given back once the batcher has copied it. */
  readonly operations: OperationWriter;
  issues: LineIssue[];
  sizeBytes: number;
  /** The last line in it. */
  line: number;
  lineCount: number;
}

/** Operations of a full group: 1,000, or 250 while single calls come. The last line may bring more. */
export const groupOperationsMax = (areCallsComing: boolean): number =>
  areCallsComing ? GROUP_OPERATIONS_MAX / GROUP_DIVISOR_BESIDE_CALLS : GROUP_OPERATIONS_MAX;

/** True if the group is to be committed before it takes another line. Asked after each line. */
export function isFull(
  { operations, sizeBytes, issues, lineCount }: Group,
  turns: Pick<Turns, 'areCallsComing'>,
): boolean {
  if (issues.length >= GROUP_ISSUES_MAX || lineCount >= GROUP_LINES_MAX) return true;
  const part = Math.max(operations.count / GROUP_OPERATIONS_MAX, sizeBytes / GROUP_SIZE_BYTES_MAX);
  return part >= 1 || (part >= 1 / GROUP_DIVISOR_BESIDE_CALLS && turns.areCallsComing);
}
