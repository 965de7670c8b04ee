/**
 * Private files with customers' data. Only the account that runs the service reads them, with any umask, after any
 * earlier version, and in any folder.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const STICKY = 0o1000;
/** Of the file system at the root of a volume. */
const OF_VOLUME = 'lost+found';
/** SQLite gives its companions the mode of the file; companions of an earlier version have their own. */
const COMPANIONS = ['', '-wal', '-shm', '-journal'];

/**
 * Makes an empty file if it is missing, and removes the rights of all accounts but its owner. SQLite reads an empty file
 * as a new database.
 *
 * @throws the system's error if it cannot be made.
 */
export function keepFilePrivate(path: string): void {
  // One that is there is never opened: to close it would give up the locks that SQLite has on it in this process.
  if (!existsSync(path)) closeSync(openSync(path, 'a', FILE_MODE));
  for (const companion of COMPANIONS) restrict(`${path}${companion}`, FILE_MODE);
}

/**
 * Makes a folder that only its owner enters, or restricts an existing one to its owner. A folder with other files, or
 * one of all accounts, such as `/tmp`, stays unchanged: others need it, and the files in it are private by themselves.
 *
 * @param isOurs - whether an entry is of the files that are kept there.
 * @throws the system's error if it cannot be made or read.
 */
export function keepFolderPrivate(path: string, isOurs: (entry: string) => boolean): void {
  mkdirSync(path, { recursive: true, mode: FOLDER_MODE });
  const isShared = (statSync(path).mode & STICKY) !== 0;
  const entries = readdirSync(path).filter((entry) => entry !== OF_VOLUME);
  if (!isShared && entries.every(isOurs)) restrict(path, FOLDER_MODE);
}

/** A file of another account, as the root of a mounted volume may be, stays as it is. */
function restrict(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['ENOENT', 'EPERM', 'EROFS'].includes(code)) throw error;
  }
}
