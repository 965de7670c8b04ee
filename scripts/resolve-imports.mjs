/**
 * For `node --import`: finds the imports of our own modules without a search.
 *
 * Node looks for each import in several folders and reads the `package.json` of each one, which was a quarter of a start.
 * Our imports have three forms, and each has one place:
 *
 *   ./name.ts, ../name.ts    beside the module
 *   @sluice/PACKAGE/NAME     packages/PACKAGE/src/NAME.ts (`exports` of each package)
 *   a joined package         its file of `join-packages.mjs`, if the packages were joined
 *
 * Node finds every other import, and all imports of packages. So a package that is not joined, and imports a joined one, has
 * a second copy of it.
 */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { JOINED_PACKAGES, joinedFileOf, joinedFolder } from './join-packages.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PACKAGES = new URL('../packages/', import.meta.url).href;
const OWN = /^@sluice\/([a-z-]+)\/(.+)$/;

const folder = existingFolder();
const joined = new Map(
  folder === undefined
    ? []
    : JOINED_PACKAGES.map((name) => [name, pathToFileURL(join(folder, joinedFileOf(name))).href]),
);

registerHooks({
  resolve(specifier, context, nextResolve) {
    const { parentURL } = context;
    if (!parentURL?.endsWith('.ts') || parentURL.includes('/node_modules/'))
      return nextResolve(specifier, context);
    const url = specifier.startsWith('.')
      ? ownFile(new URL(specifier, parentURL))
      : (joined.get(specifier) ?? findOwn(specifier));
    if (url === undefined) return nextResolve(specifier, context);
    return { url, format: 'module', shortCircuit: true };
  },
});

/** @returns {string | undefined} undefined without joined packages, or if the lockfile cannot be read. */
function existingFolder() {
  try {
    const path = joinedFolder();
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** @param {URL} url @returns {string | undefined} */
const ownFile = ({ href }) =>
  href.startsWith(PACKAGES) && href.endsWith('.ts') ? href : undefined;

/** @param {string} specifier @returns {string | undefined} */
function findOwn(specifier) {
  const [, name = '', path = ''] = OWN.exec(specifier) ?? [];
  if (name === '') return undefined;
  const file = join(ROOT, 'packages', name, 'src', `${path}.ts`);
  return existsSync(file) ? pathToFileURL(file).href : undefined;
}
