/**
 * Builds the web console (`packages/console`) and prints its folder.
 *
 * The folder is `node_modules/.cache/sluice-console/HASH`. HASH is of its sources, the code that it imports, the pages of `docs/`, the lockfile
 * and the programs that build. A folder that is there is complete: a build is written beside it and renamed. Plain JavaScript, because
 * the image and `npm start` run it before anything else is there.
 *
 * The folder has a page for the console and one for the portal, and `assets/`, whose names have a hash of their own, each also as
 * gzip and brotli. `docs/` has the pages of `build-docs.mjs`.
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
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync, constants } from 'node:zlib';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCE = join(ROOT, 'packages/console/src');
/** The page's script has their code: the console makes its calls by the first, and writes CSV by the second. */
const IMPORTED = ['packages/client/src/client.js', 'packages/domain/src/value-rules/csv-line.ts'];
const DOCS = join(ROOT, 'docs');
const CACHE = join(ROOT, 'node_modules/.cache/sluice-console');
/** Of earlier versions, so that `git switch` back and forth starts no build. */
const KEPT_COUNT = 5;
/** Page → its script. */
const PAGES = { 'index.html': 'main', 'portal.html': 'portal' };
/** Its path is a literal in the page, which a browser with Trusted Types wants. So its name has no hash. */
const WORKERS = ['json/json-worker.ts'];
/** Of a build that runs, or that was killed. */
const UNFINISHED = 'unfinished-';

/**
 * @param {string} [source] the folder of the pages, their scripts and workers, `styles/console.css`, `styles/docs.css` and `icon.svg`
 * @param {string} [cache]
 * @param {string} [docs] the folder of the pages of the documentation
 * @returns {Promise<string>} the folder
 */
export async function buildConsole(source = SOURCE, cache = CACHE, docs = DOCS) {
  const folder = join(cache, hashOf(source, docs));
  if (existsSync(folder)) {
    const now = new Date();
    utimesSync(folder, now, now);
    return folder;
  }
  const unfinished = join(cache, `${UNFINISHED}${randomUUID()}`);
  try {
    mkdirSync(join(unfinished, 'assets'), { recursive: true });
    const find = await bundle(source, join(unfinished, 'assets'));
    writeFileSync(join(unfinished, 'assets/icon.svg'), readFileSync(join(source, 'icon.svg')));
    for (const [page, script] of Object.entries(PAGES)) {
      const text = readFileSync(join(source, page), 'utf8')
        .replace('%SCRIPT%', () => `/assets/${find(script, '.js')}`)
        .replace('%STYLE%', () => `/assets/${find('console', '.css')}`);
      writeFileSync(join(unfinished, page), text);
    }
    for (const path of filesOf(unfinished)) compress(join(unfinished, path));
    await writeDocs(docs, `/assets/${find('docs', '.css')}`, join(unfinished, 'docs'));
    renameUnlessThere(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  removeOldest(cache);
  return folder;
}

/**
 * @param {string} docs
 * @param {string} style
 * @param {string} folder
 */
async function writeDocs(docs, style, folder) {
  const { renderDocs } = await import('./build-docs.mjs');
  for (const [path, content] of Object.entries(renderDocs(docs, style))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

/**
 * Another process may have built the same meanwhile.
 *
 * @param {string} from
 * @param {string} to
 */
function renameUnlessThere(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

/** They share a process of esbuild's. */
let buildCount = 0;

/**
 * @param {string} source
 * @param {string} folder
 */
async function bundle(source, folder) {
  const { build, stop } = await import('esbuild');
  buildCount++;
  /** @satisfies {import('esbuild').BuildOptions} */
  const common = {
    outdir: folder,
    bundle: true,
    minify: true,
    format: /** @type {const} */ ('esm'),
    // Browsers that have `light-dark()`: Chrome 123, Firefox 120, Safari 17.5.
    target: ['es2023', 'chrome123', 'firefox120', 'safari17.5'],
    legalComments: /** @type {const} */ ('none'),
    logLevel: /** @type {const} */ ('silent'),
  };
  // Each page by itself: the parts that both have would become a file of its own, and a further request of the first
  // screen. A module that is imported by `import()` is a file beside its page.
  /** @param {string[]} files */
  const buildNamed = async (files) => {
    const { metafile } = await build({
      ...common,
      entryPoints: files.map((file) => join(source, file)),
      entryNames: '[name]-[hash]',
      splitting: true,
      jsx: 'automatic',
      define: { 'process.env.NODE_ENV': '"production"' },
      metafile: true,
    });
    return Object.keys(metafile.outputs).map((path) => basename(path));
  };
  const buildPages = async () => {
    const names = await buildNamed(['styles/console.css', 'styles/docs.css']);
    for (const script of Object.values(PAGES)) names.push(...(await buildNamed([`${script}.tsx`])));
    return names;
  };
  const buildWorkers = () =>
    build({
      ...common,
      entryPoints: WORKERS.map((name) => join(source, name)),
      entryNames: '[name]',
    });
  // One after the other, so that a failure leaves no build that still writes.
  const names = await buildWorkers()
    .then(buildPages)
    .finally(() => {
      buildCount--;
      // Its process would live on beside us, with 22 MB.
      if (buildCount === 0) void stop();
    });
  return (/** @type {string} */ entry, /** @type {string} */ end) => {
    const name = names.find((each) => each.startsWith(`${entry}-`) && each.endsWith(end));
    if (name === undefined) throw new Error(`the build made no ${entry}${end}`);
    return name;
  };
}

/** @param {string} path */
function compress(path) {
  const content = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
}

/**
 * @param {string} source
 * @param {string} docs
 */
function hashOf(source, docs) {
  const hash = createHash('sha256');
  /** @type {[folder: string, paths: string[]][]} */
  const all = [
    [source, filesOf(source)],
    [docs, filesOf(docs).filter((path) => path.endsWith('.md'))],
    [
      ROOT,
      ['package-lock.json', ...IMPORTED, 'scripts/build-console.mjs', 'scripts/build-docs.mjs'],
    ],
  ];
  for (const [folder, paths] of all)
    for (const path of paths)
      hash
        .update(`${path}\0`)
        .update(readFileSync(join(folder, path)))
        .update('\0');
  return hash.digest('hex').slice(0, 32);
}

/** @param {string} folder @returns {string[]} */
function filesOf(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .toSorted();
}

/** @param {string} cache */
function removeOldest(cache) {
  const byAge = readdirSync(cache)
    .filter((name) => !name.startsWith(UNFINISHED))
    .map((name) => ({ name, usedAtMs: statSync(join(cache, name)).mtimeMs }))
    .toSorted((one, other) => other.usedAtMs - one.usedAtMs);
  for (const { name } of byAge.slice(KEPT_COUNT))
    rmSync(join(cache, name), { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  console.log(await buildConsole());
