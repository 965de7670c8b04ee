/** Packages that `package-lock.json` installs on this machine. Plain JavaScript without packages, for `install.mjs`. */
import { readFileSync } from 'node:fs';

/**
 * @typedef {object} LockedPackage
 * @property {string} path of the installation: `node_modules/…`
 * @property {string} spec npm's name of it: `name@version`
 * @property {string} integrity of its archive: `sha512-…`
 * @property {boolean} isOptional left out by `--omit=optional` beside `--omit=dev`
 * @property {boolean} isTool needed by developers only
 */

/**
 * The packages for this platform, without links to our own.
 *
 * @param {string} file
 * @returns {LockedPackage[]}
 */
export function readLockedPackages(file) {
  /** @type {{ packages: Record<string, LockEntry> }} */
  const { packages } = JSON.parse(readFileSync(file, 'utf8'));
  return Object.entries(packages).flatMap(([path, entry]) => {
    if (!/(^|\/)node_modules\//.test(path) || entry.link === true || !isForThisPlatform(entry))
      return [];
    const name = entry.name ?? path.replace(/^.*node_modules\//, '');
    return {
      path,
      spec: `${name}@${entry.version}`,
      integrity: entry.integrity ?? '',
      isOptional: entry.optional === true || entry.devOptional === true,
      isTool: entry.dev === true,
    };
  });
}

/**
 * @typedef {object} LockEntry
 * @property {string} [name]
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [link]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {boolean} [devOptional]
 * @property {string | string[]} [os]
 * @property {string | string[]} [cpu]
 * @property {string | string[]} [libc]
 */

/** @param {LockEntry} entry */
function isForThisPlatform({ os, cpu, libc }) {
  return (
    allows(os, process.platform) &&
    allows(cpu, process.arch) &&
    (libc === undefined || process.platform !== 'linux' || allows(libc, ourLibc()))
  );
}

/**
 * @param {string | string[] | undefined} listed
 * @param {string} ours
 */
function allows(listed, ours) {
  const names = listed === undefined ? [] : [listed].flat();
  return (
    !names.includes(`!${ours}`) &&
    (names.every((name) => name.startsWith('!')) || names.includes(ours))
  );
}

function ourLibc() {
  const { header } = /** @type {{ header: object }} */ (
    /** @type {unknown} */ (process.report.getReport())
  );
  return 'glibcVersionRuntime' in header ? 'glibc' : 'musl';
}
