/**
 * Joins packages that services load at their start into a few files. It runs once for each installation.
 *
 * A service loads some 700 files of packages, which was two thirds of its start. Joined, they are a dozen files.
 * `resolve-imports.mjs` lets a service load them; without them it loads the packages themselves. Our own modules are
 * never joined, so a stack trace shows the line of our source.
 *
 * The files are `node_modules/.cache/joined/HASH`. HASH is of the lockfile and of this program, so they are never out of
 * date. A folder that is there is complete: it is written beside its place and renamed. Plain JavaScript, because
 * `install.mjs` and the image run it before anything else is there.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Of files that share a module, one process must load all joined or all unjoined: two copies of a class are two classes. */
export const JOINED_PACKAGES = [
  '@fastify/busboy',
  '@fastify/swagger',
  'bullmq',
  'csv-parse',
  'fastify',
  'fastify-type-provider-zod',
  'ioredis',
  'kysely',
  'kysely/migration',
  'nodemailer',
  'pg',
  'pino',
  'prom-client',
  'zod',
];
/** Folders of earlier versions: a process that runs may still load a file of its own. */
const KEPT_COUNT = 3;
/** Found beside the package by its own program, if they are there: code for one platform. */
const NATIVE = ['msgpackr-extract', 'pg-native'];
/** esbuild gives it to modules that call `require`; the files it joins are ES modules. */
const REQUIRE = `import{createRequire as joinedRequire}from'node:module';const require=joinedRequire(import.meta.url);`;

/** @param {string} specifier of a joined package. @returns {string} the name of its file in the folder. */
export const joinedFileOf = (specifier) => `${specifier.replaceAll('/', '__')}.js`;

/** @param {string} [root] the checkout. @returns {string} the folder, which may be absent. */
export function joinedFolder(root = ROOT) {
  const hash = createHash('sha256');
  for (const file of [join(root, 'package-lock.json'), fileURLToPath(import.meta.url)])
    hash.update(readFileSync(file)).update('\0');
  return join(root, 'node_modules/.cache/joined', hash.digest('hex').slice(0, 32));
}

/**
 * Two that run at the same time both write; the first one to end counts.
 *
 * @param {string} [folder]
 * @throws {Error} if a package is absent, or the folder cannot be written.
 */
async function joinPackages(folder = joinedFolder()) {
  if (existsSync(folder)) return;
  const unfinished = `${folder}-${randomUUID()}`;
  try {
    mkdirSync(dirname(folder), { recursive: true });
    await writeJoined(unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  removeOldest(dirname(folder));
}

/** Of complete folders: another process may be writing its own. @param {string} cache */
function removeOldest(cache) {
  const names = readdirSync(cache).filter((name) => /^[0-9a-f]{32}$/.test(name));
  const folders = names.map((name) => join(cache, name));
  const byAge = folders.toSorted((one, other) => timeOf(other) - timeOf(one));
  for (const old of byAge.slice(KEPT_COUNT)) rmSync(old, { recursive: true, force: true });
}

/** @param {string} folder which another process may have removed. @returns {number} */
const timeOf = (folder) => statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** @param {string} folder */
async function writeJoined(folder) {
  const { build } = await import('esbuild');
  const names = Object.fromEntries(
    await Promise.all(
      JOINED_PACKAGES.map(
        async (specifier) =>
          /** @type {const} */ ([specifier, Object.keys(await import(specifier))]),
      ),
    ),
  );
  await build({
    entryPoints: JOINED_PACKAGES.map((specifier) => ({
      in: `joined:${specifier}`,
      out: joinedFileOf(specifier).slice(0, -'.js'.length),
    })),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: NATIVE,
    banner: { js: REQUIRE },
    legalComments: 'none',
    logLevel: 'error',
    plugins: [
      {
        name: 'entries',
        setup(joining) {
          // The ending makes esbuild read a CommonJS package as Node does: `default` is all of `module.exports`.
          joining.onResolve({ filter: /^joined:/ }, ({ path }) => ({
            path: `${path.slice('joined:'.length)}.mjs`,
            namespace: 'joined',
          }));
          joining.onLoad({ filter: /.*/, namespace: 'joined' }, ({ path }) => {
            const specifier = path.slice(0, -'.mjs'.length);
            const exported = (names[specifier] ?? []).filter((name) => /^\w+$/.test(name));
            return {
              contents: `export { ${exported.join(', ')} } from '${specifier}';\n`,
              resolveDir: ROOT,
            };
          });
        },
      },
    ],
  });
}

// Node itself must import the packages: a test runner gives some of them other names.
if (process.argv[1] === fileURLToPath(import.meta.url)) await joinPackages(process.argv[2]);
