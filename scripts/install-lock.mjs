/**
 * One installation at a time: three shells that start intake, worker and API of a fresh clone would otherwise run npm
 * three times in the same folder, which breaks it.
 *
 * The lock is a file with the process id of its holder. If that process is gone, the lock is taken over, under a second
 * lock that is held for an instant, so that two waiters do not both take it.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const POLL_INTERVAL_MS = 100;

/**
 * Runs `act` while it holds the lock.
 *
 * @param {string} file
 * @param {() => void} onWait called once if another has it
 * @param {() => Promise<void>} act
 */
export async function whileLocked(file, onWait, act) {
  let hasWaited = false;
  while (!take(file)) {
    if (isAbandoned(file)) {
      takeAway(file);
      continue;
    }
    if (!hasWaited) onWait();
    hasWaited = true;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  try {
    await act();
  } finally {
    process.removeListener('exit', release);
    release();
  }
}

/** @param {string} file */
function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} file */
function isAbandoned(file) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // Released just now.
    return false;
  }
  // Empty between its making and the writing of the id.
  if (text === '') return false;
  try {
    process.kill(Number(text), 0);
    return false;
  } catch (error) {
    // EPERM: it is another user's, and there.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH';
  }
}

/** @param {string} file */
function takeAway(file) {
  const guard = `${file}.taken-over`;
  try {
    mkdirSync(guard);
  } catch {
    return;
  }
  try {
    // Another may have taken it over meanwhile, and holds it.
    if (isAbandoned(file)) rmSync(file, { force: true });
  } finally {
    rmSync(guard, { recursive: true, force: true });
  }
}
