/**
 * For `node --import`: keeps each TypeScript module without its types, so that the next start need not remove them
 * again. Node 22 keeps compiled code (NODE_COMPILE_CACHE), but not this step, which was 1.1 s of the 4.0 s of CPU that the
 * four services of a warm `npm start` used.
 *
 * An entry is named by a hash of the module's text and of Node's version, so it is never out of date. If the folder
 * cannot be written, entries are not kept. Plain JavaScript: as TypeScript it would need the very step that it avoids.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../node_modules/.cache/stripped/', import.meta.url));

// Its own packages are of JavaScript.
registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
    return { format: 'module', source: stripOnce(fileURLToPath(url)), shortCircuit: true };
  },
});

/** @param {string} path */
function stripOnce(path) {
  const typed = readFileSync(path, 'utf8');
  const name = createHash('sha256').update(`${process.version}\0${typed}`).digest('hex');
  const file = join(FOLDER, `${name}.js`);
  try {
    return readFileSync(file, 'utf8');
  } catch {
    const stripped = stripTypeScriptTypes(typed);
    keep(file, stripped);
    return stripped;
  }
}

/** Whole or not at all: several processes start at the same time. @param {string} file @param {string} text */
function keep(file, text) {
  try {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(`${file}.${process.pid}`, text);
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // Somebody else's checkout: it starts as quickly as without this file.
  }
}
