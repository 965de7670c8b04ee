/**
 * Part of `npm run check`: holds pages, comments and messages to the patterns of `prose/rules.ts`.
 *
 * `prose/ceilings.json` has the allowed findings of files and folders. A file that it does not name may have 0. A ceiling only
 * falls: `--lower` writes the lower counts. `--list PATH…` prints the findings of files or folders.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { areaOf, comparedToCeilings, type Ceilings } from './prose/ceilings.ts';
import { findingsOf, type Finding, type Passage } from './prose/rules.ts';
import { passagesOfHashComments, passagesOfScript } from './prose/texts-of-code.ts';
import { passagesOfPage } from './prose/texts-of-pages.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CEILINGS = `${ROOT}scripts/prose/ceilings.json`;
/** Made by programs, or texts of others. */
const LEFT_OUT =
  /(?:^|\/)(?:node_modules|dist|results|\.turbo)\/|\.d\.ts$|\/build\/|kubernetes\/schemas\.json$/;
/** Findings of an area that are printed if git shows no changed file in it. */
const PRINTED_MAX = 40;

const [flag, ...paths] = process.argv.slice(2);
const findings = new Map(
  readdirSync(ROOT)
    .filter((name) => !/^(?:\.|node_modules$)/.test(name))
    .flatMap(filesIn)
    .map((path) => [path, findingsIn(path)] as const),
);
if (flag === '--list') {
  for (const [path, found] of findings)
    if (paths.some((wanted) => path === wanted || path.startsWith(`${wanted.replace(/\/$/, '')}/`)))
      print(path, found);
} else {
  const counts = Object.fromEntries([...findings].map(([path, found]) => [path, found.length]));
  const ceilings = JSON.parse(readFileSync(CEILINGS, 'utf8')) as Ceilings;
  const { counted, risen, lowered } = comparedToCeilings(counts, ceilings);
  if (flag === '--lower') writeFileSync(CEILINGS, `${JSON.stringify(lowered, undefined, 2)}\n`);
  for (const area of risen) {
    console.log(`${area}: ${counted[area]} findings, and ${ceilings[area] ?? 0} are allowed.`);
    printChanged([...findings].filter(([path]) => areaOf(path, ceilings) === area));
  }
  const total = (of: Ceilings): number => Object.values(of).reduce((sum, count) => sum + count, 0);
  if (total(lowered) < total(ceilings))
    console.log('note: counts fell. Lower the ceilings: node scripts/check-prose.ts --lower');
  process.exitCode = risen.length === 0 ? 0 : 1;
}

/** Prints the findings of files that differ from `main`, or the first ones of the area. */
function printChanged(files: readonly (readonly [string, Finding[]])[]): void {
  const { stdout } = spawnSync('git', ['diff', '--name-only', 'main'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const changed = new Set((stdout ?? '').split('\n'));
  const shown = files.filter(([path]) => changed.has(path));
  for (const [path, found] of shown) print(path, found);
  if (shown.length > 0) return;
  const all = files.flatMap(([path, found]) => found.map((finding) => [path, finding] as const));
  for (const [path, finding] of all.slice(0, PRINTED_MAX)) print(path, [finding]);
}

function filesIn(name: string): string[] {
  if (/\.\w+$/.test(name)) return isRead(name) ? [name] : [];
  try {
    return readdirSync(`${ROOT}${name}`, { recursive: true, encoding: 'utf8' })
      .map((path) => `${name}/${path}`)
      .filter(isRead)
      .toSorted();
  } catch {
    return [];
  }
}

function isRead(path: string): boolean {
  return (
    !LEFT_OUT.test(path) &&
    (/\.(?:md|tsx?|mjs|cjs)$/.test(path) ||
      /^infra\/.*(?:\.(?:ya?ml|conf|env)|Dockerfile)$/.test(path))
  );
}

function findingsIn(path: string): Finding[] {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return passagesOf(path, text)
    .flatMap(findingsOf)
    .toSorted((a, b) => a.line - b.line);
}

function passagesOf(path: string, text: string): Passage[] {
  if (path.endsWith('.md')) return passagesOfPage(text);
  return /\.(?:tsx?|mjs|cjs)$/.test(path)
    ? passagesOfScript(path, text)
    : passagesOfHashComments(text);
}

function print(path: string, found: readonly Finding[]): void {
  for (const { line, rule, quote } of found) console.log(`${path}:${line}: ${rule}\n    ${quote}`);
}
