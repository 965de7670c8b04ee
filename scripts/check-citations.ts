/**
 * Part of `npm run check`: each section and invariant of the specification that a file cites stands in `docs/spec/`, each
 * section there names the tests that hold it, and no file names a page that is not in the repository. The rules:
 * `citations.ts`. With `--list` it prints every citation.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  citationsOf,
  lostCitations,
  pagesElsewhere,
  readSpecPage,
  untestedSections,
} from './citations.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['packages', 'benchmarks', 'scripts', 'infra', 'docs'];
const READ = /\.(?:[cm]?[jt]sx?|md|ya?ml|conf|sh|sql|py|go|rs|java|html|css)$/;
/** Made-up citations, to test the rules with. */
const EXAMPLES: ReadonlySet<string> = new Set([
  'scripts/citations.ts',
  'scripts/test/citations.test.ts',
]);

const files = [...rootFiles(), ...FOLDERS.flatMap(filesIn)];
const read = (path: string): string => readFileSync(ROOT + path, 'utf8');
const names = files
  .flatMap((path) => /^docs\/spec\/([\w-]+\.md)$/.exec(path)?.[1] ?? [])
  .filter((name) => name !== 'README.md');
const pages = names.map((name) => readSpecPage(name, read(`docs/spec/${name}`)));

const paths: ReadonlySet<string> = new Set(files);
const texts = files
  .filter((path) => READ.test(path) && !EXAMPLES.has(path))
  .map((path) => ({ path, text: read(path) }));
const citations = texts.flatMap(({ path, text }) => citationsOf(path, text, new Set(names)));
const problems = [
  ...lostCitations(citations, pages),
  ...texts.flatMap(({ path, text }) => pagesElsewhere(path, text, paths)),
  ...pages.flatMap((page) =>
    untestedSections(page, (path) => (existsSync(ROOT + path) ? read(path) : undefined)),
  ),
];
if (process.argv.includes('--list'))
  for (const { path, line, page, place } of citations)
    console.log(`${path}:${line} ${page} ${place}`);
for (const { path, line, problem } of problems) console.error(`${path}:${line} ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

function rootFiles(): string[] {
  return readdirSync(ROOT, { withFileTypes: true }).flatMap((entry) =>
    entry.isFile() && !entry.name.startsWith('.') ? [entry.name] : [],
  );
}

/** Generated and installed files are in folders of other names. */
function filesIn(folder: string): string[] {
  return readdirSync(ROOT + folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') return [];
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesIn(path) : [path];
  });
}
