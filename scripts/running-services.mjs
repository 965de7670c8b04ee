/**
 * Finds the processes of a service from this checkout for one installation.
 * It works without a supervisor: `npm run intake` in three shells leaves no list of them.
 *
 * From `/proc`: bare machines have no `ps`, and it also has the settings that each was started with.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';

/**
 * @typedef {object} RunningService
 * @property {number} pid
 * @property {Record<string, string>} environment as it was started
 * @property {string} folder that it runs in; relative settings are below it
 * @property {string[]} words of Node's command line, with the file of the service
 * @property {boolean} isSupervised `npm start` started it, and starts it again
 */

/**
 * @param {string} mainFile absolute
 * @param {string} databaseUrl of the installation
 * @returns {RunningService[]} oldest first
 */
export function findRunningServices(mainFile, databaseUrl) {
  const file = realpathSync(mainFile);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((a, b) => a - b)
    .flatMap((pid) => readService(pid, file) ?? [])
    .filter(({ environment }) => environment.DATABASE_URL === databaseUrl);
}

/**
 * @param {number} pid
 * @param {string} file
 * @returns {RunningService | undefined} undefined if it is something else, another user's, or has ended
 */
function readService(pid, file) {
  try {
    const [, ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
    const folder = readlinkSync(`/proc/${pid}/cwd`);
    const isIts = (/** @type {string} */ word) =>
      word.endsWith(`/${basename(file)}`) && realpathSync(resolve(folder, word)) === file;
    if (!words.some(isIts)) return undefined;
    const environment = Object.fromEntries(
      readFileSync(`/proc/${pid}/environ`, 'utf8')
        .split('\0')
        .filter((line) => line.includes('='))
        .map((line) => {
          const at = line.indexOf('=');
          return [line.slice(0, at), line.slice(at + 1)];
        }),
    );
    return { pid, environment, folder, words, isSupervised: isSupervised(pid) };
  } catch {
    return undefined;
  }
}

/** @param {number} pid */
function isSupervised(pid) {
  const [, parent = ''] =
    /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  try {
    return readFileSync(`/proc/${parent}/cmdline`, 'utf8').includes(
      'packages/standalone/src/main.ts',
    );
  } catch {
    return false;
  }
}

/**
 * The ports that a process itself listens on. An answer on a port may be another's, for intakes share one.
 *
 * @param {number} pid
 * @returns {number[]}
 */
export function listeningPortsOf(pid) {
  try {
    const inodes = new Set(
      readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
        const [, inode] = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${name}`)) ?? [];
        return inode ?? [];
      }),
    );
    const rows = ['tcp', 'tcp6'].flatMap((table) => readTable(`/proc/${pid}/net/${table}`));
    const LISTEN = '0A';
    return rows
      .filter(({ state, inode }) => state === LISTEN && inodes.has(inode))
      .map(({ port }) => port);
  } catch {
    return [];
  }
}

/** Closed meanwhile: empty. @param {string} path */
function linkOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Of sockets, as proc(5) describes it. A machine without IPv6 has no `tcp6`. @param {string} path */
function readTable(path) {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return [];
  }
  return text
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => {
      const [, local = '', , state = '', , , , , , inode = ''] = line.trim().split(/\s+/);
      return { port: Number.parseInt(local.split(':').at(-1) ?? '', 16), state, inode };
    });
}
