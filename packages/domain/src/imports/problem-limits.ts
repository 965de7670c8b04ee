/**
 * Limits for the kept problems of an import's rows.
 *
 * They stay for months after the file is deleted, and hold the rows as they came: a row with twenty problems is kept
 * twenty times. Without a bound of bytes a file of wrong rows would stay as a multiple of itself. Pure.
 */

/** Rows of each severity that an import keeps; all are counted. */
export const PROBLEM_ROWS_MAX = 100_000;

const MEBIBYTE = 1_048_576;
/** Bytes of the kept problems of all imports of a workspace. */
export const PROBLEMS_SIZE_BYTES_MAX = 256 * MEBIBYTE;
/** Of the rest, so that one file never takes the space of the next. */
const PROBLEMS_PART_OF_REST = 1 / 4;

/** Bytes of one problem besides its texts: its numbers, its place in the index, the heads of both rows. */
export const PROBLEM_ROW_SIZE_BYTES = 128;

/** Bytes of kept problems. */
export interface ProblemsSize {
  /** Of this import. */
  readonly own: number;
  /** Of all other imports of its workspace. */
  readonly others: number;
}

/** Bytes of further problems that the import keeps; 0 or more. */
export const problemsCapacity = ({ own, others }: ProblemsSize): number =>
  Math.max(0, (PROBLEMS_SIZE_BYTES_MAX - others) * PROBLEMS_PART_OF_REST - own);
