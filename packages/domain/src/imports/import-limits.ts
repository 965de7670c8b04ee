/**
 * Limits for the imports that a workspace has under way.
 *
 * Their files lie in the Postgres of all workspaces until they end, so without a bound one workspace could fill it.
 * Pure.
 */

/**
 * Enough to hand in three months of daily files at once. Workers take them one after the other, so more at a time
 * would not be faster. A setting bounds the bytes.
 */
export const UNFINISHED_IMPORT_COUNT_MAX = 100;

/**
 * An import that has not ended after so many days fails once no worker works on it: no file takes so long, and it must
 * not keep its bytes and its place for ever. Workers may be away for weeks before that.
 */
export const UNFINISHED_IMPORT_DAYS_MAX = 30;

const GIBIBYTE = 1_024 ** 3;
/**
 * Bytes of one file: the default of the API and of the workers. They share it, so that workers fetch files that the API
 * would accept.
 */
export const IMPORT_SIZE_BYTES_DEFAULT = 10 * GIBIBYTE;
/** Bytes of all unfinished imports of a workspace: the default of both. */
export const UNFINISHED_IMPORTS_SIZE_BYTES_DEFAULT = 20 * GIBIBYTE;

/**
 * Bytes of all unfinished imports of all workspaces: the default of both. One workspace may always have its share, a
 * quarter of it.
 */
export const IMPORT_STORAGE_SIZE_BYTES_DEFAULT = 80 * GIBIBYTE;

const WHAT_TO_DO = 'Wait until one has ended or cancel one, then send this one again';

export const TOO_MANY_IMPORTS = `the workspace has ${UNFINISHED_IMPORT_COUNT_MAX} imports that have not ended, which is the limit. ${WHAT_TO_DO}`;

/** The refusal of a file that is sent to us and finds no capacity. */
export const noCapacityForImport = (sizeBytesMax: number): string =>
  `the files of the workspace's unfinished imports may be ${sizeBytesMax} bytes together, and this file exceeds that capacity. ${WHAT_TO_DO}`;

/** Message of an import whose file cannot be fetched yet because the files of others take the capacity. */
export const waitsForCapacity = (sizeBytesMax: number): string =>
  `waits until the workspace's other imports have ended: their files may be ${sizeBytesMax} bytes together, and this file exceeded that capacity`;

/** The refusal of a file that is sent to us and finds no storage left for its workspace. */
export const NO_STORAGE_FOR_IMPORT =
  'the storage for the files of imports is full, or has no capacity left for this workspace; send the file again later';

/** Message of an import whose file cannot be fetched yet because the storage has no more for its workspace. */
export const WAITS_FOR_STORAGE =
  'waits until the file can be stored: the storage for the files of imports is full, or has no capacity left for this workspace';

/** Reason for which such an import fails, even if it is the only one. */
export const largerThanStorage = (sizeBytesMax: number): string =>
  `the file is larger than the share of a workspace in the ${sizeBytesMax} bytes of storage for the files of imports; split it`;

/** Why such an import fails, though all other files went. */
export const largerThanCapacity = (sizeBytesMax: number): string =>
  `the file is larger than the ${sizeBytesMax} bytes that the workspace's imports may have together; split it`;
