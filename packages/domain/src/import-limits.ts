/**
 * What a workspace may have of imports that have not ended. Their files lie in the Postgres of all workspaces until
 * they end, so without a bound one workspace could fill it. Pure.
 */

/**
 * Begun and not ended. A file a day of three months may be handed in at once; workers take them one after the other,
 * so more at a time does not make it faster. The bytes are bounded by themselves, by a setting.
 */
export const UNFINISHED_IMPORT_COUNT_MAX = 100;

/**
 * One that has not ended so many days after it was made is failed once nobody works on it: no file takes so long, so
 * it cannot be done, and it must not hold its bytes and its place for ever. Workers may be away for weeks before that.
 */
export const UNFINISHED_IMPORT_DAYS_MAX = 30;

const WHAT_TO_DO = 'wait until one has ended or cancel one, then send this one again';

export const TOO_MANY_IMPORTS = `the workspace has ${UNFINISHED_IMPORT_COUNT_MAX} imports that have not ended, which is as many as there may be; ${WHAT_TO_DO}`;

/** For the import that finds no room; also what is shown of one whose file was being fetched. */
export const noRoomForImport = (sizeBytesMax: number): string =>
  `the files of the workspace's imports that have not ended may be ${sizeBytesMax} bytes together, and there is no room for this one; ${WHAT_TO_DO}`;
