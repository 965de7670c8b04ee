/**
 * Reads which file imports which, of all packages: `import` and `export … from`, types included, and `import('…')`.
 *
 * Read by a regular expression, which is enough for code that oxfmt has formatted: a statement begins its line.
 * Used by `check-layers.ts`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** One import, as a file has it. */
export interface Import {
  readonly specifier: string;
  /** The file that it names, from the root of the repository. Undefined: a library or a part of Node. */
  readonly target: string | undefined;
}

/** A file, by its path from the root of the repository, with its imports. */
export interface ImportingFile {
  readonly path: string;
  readonly imports: readonly Import[];
}

const STATEMENT = /^(?:import|export)\s(?:[^'"=();]*?\sfrom\s)?['"]([^'"]+)['"]/gm;
const CALL = /\bimport\(\s*['"]([^'"]+)['"]/g;

/** @param path - of the file, from the root: its relative imports begin there. */
export function importsOf(path: string, text: string): Import[] {
  return [STATEMENT, CALL]
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, specifier = '']) => ({ specifier, target: targetOf(path, specifier) }));
}

function targetOf(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return normalize(join(dirname(path), specifier));
  const [, name, file] = /^@sluice\/([^/]+)\/(.+)$/.exec(specifier) ?? [];
  return name && `packages/${name}/src/${file}.ts`;
}

/** @param root - the folder of the repository. */
export function readImportGraph(root: string, folders: readonly string[]): ImportingFile[] {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.(tsx?|js|mjs)$/.test(name) && !name.includes('node_modules'))
        .map((name) => `${folder}/${name}`),
    )
    .toSorted()
    .map((path) => ({ path, imports: importsOf(path, readFileSync(join(root, path), 'utf8')) }));
}
