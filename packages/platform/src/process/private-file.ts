/**
 * Files that hold customers' data: only the account that runs the service reads them, whatever the umask, whatever an
 * earlier version left, and whatever the folder was.
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
/** SQLite gives its companions the mode of the file; those of an earlier version have their own. */
const COMPANIONS = ['', '-wal', '-shm', '-journal'];

/**
 * Makes an empty file where there is none, and takes it from everybody but its owner. SQLite takes an empty file for a
 * new database.
 *
 * @throws the system's error where it cannot be made.
 */
export function keepFilePrivate(path: string): void {
  // One that is there is never opened: to close it would give up the locks that SQLite has on it in this process.
  if (!existsSync(path)) closeSync(openSync(path, 'a', FILE_MODE));
  for (const companion of COMPANIONS) restrict(`${path}${companion}`, FILE_MODE);
}

/**
 * Makes a folder that only its owner enters, or takes an existing one from everybody else. One that holds anything else,
 * or that is everybody's, such as `/tmp`, stays as it is: others need it, and the files in it are private by themselves.
 *
 * @param isOurs - whether an entry is of the files that are kept there.
 * @throws the system's error where it cannot be made or read.
 */
export function keepFolderPrivate(path: string, isOurs: (entry: string) => boolean): void {
  mkdirSync(path, { recursive: true, mode: FOLDER_MODE });
  const isShared = (statSync(path).mode & STICKY) !== 0;
  if (!isShared && readdirSync(path).every(isOurs)) restrict(path, FOLDER_MODE);
}

/** What is somebody else's, as the root of a mounted volume may be, stays as it is. */
function restrict(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['ENOENT', 'EPERM', 'EROFS'].includes(code)) throw error;
  }
}
