/**
 * Lines of a stream that are committed and acknowledged together.
 *
 * Filled by `take-stream.ts`.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { OperationWriter } from '../commit/operation-writer.ts';

export interface LineIssue extends Issue {
  readonly line: number;
}

const GROUP_OPERATIONS_MAX = 1_000;
const GROUP_SIZE_BYTES_MAX = 512 * 1024;
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

export const isFull = (group: Group): boolean =>
  group.operations.count >= GROUP_OPERATIONS_MAX ||
  group.sizeBytes >= GROUP_SIZE_BYTES_MAX ||
  group.issues.length >= GROUP_ISSUES_MAX ||
  group.lineCount >= GROUP_LINES_MAX;
