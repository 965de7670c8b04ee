/**
 * Pages with commands: their blocks of `sh`, and the program that types the blocks of each page.
 *
 * A block that no program can type has a line before it: `<!-- not run: the reason -->`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readRunbook, type Step } from '@sluice/chaos/runbooks/read-runbook';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Program → the pages whose commands it types. A page has at most one program. */
export const TYPISTS = {
  'packages/standalone/test/integration/page-commands.test.ts':
    /^(?:README|docs\/quickstart|docs\/guides\/.+)\.md$/,
  'packages/standalone/test/integration/deploy-commands.test.ts':
    /^docs\/operations\/(?:deploy|scale)\.md$/,
  'packages/standalone/test/integration/operator-commands.test.ts':
    /^docs\/operations\/command-line\.md$/,
  // `npm test` types two of them (`packages/chaos/test/integration/runbooks.test.ts`), `npm run runbooks` all.
  'packages/chaos/src/runbooks/main.ts': /^docs\/operations\/runbooks\/(?!README).+\.md$/,
  'scripts/test/recipes.test.ts':
    /^docs\/contributing\/add-(?:a-channel|a-payment-provider|an-endpoint|an-event-type)\.md$/,
} as const;

/** A block with its reason, and its output. */
const NOT_RUN =
  /^ *<!-- not run: \S[^\n]*? -->\n( *)```sh\b[^\n]*\n.*?^\1```\n(?: *```text\n.*?^\1```\n)?/gms;
const FENCE =
  /(?:^ *<!-- not run: (?<reason>\S[^\n]*?) -->\n)?^(?<indent> *)```(?<language>\w*)[^\n]*\n(?<text>.*?)^\k<indent>```$/gms;

export interface Block {
  /** The page and the line of the fence. */
  readonly place: string;
  readonly language: string;
  readonly text: string;
  /** Undefined if it has no such line. */
  readonly reason: string | undefined;
}

export const readPage = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

const pagesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
    join(folder, name),
  );

/** Pages for people that may have commands. */
export const PAGES: readonly string[] = [
  ...['README.md', 'CONTRIBUTING.md', ...pagesIn('docs'), ...pagesIn('infra')],
  ...readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}/README.md`),
  ...readdirSync(join(ROOT, 'benchmarks')).map((name) => `benchmarks/${name}`),
].filter((page) => page.endsWith('.md') && existsSync(join(ROOT, page)));

/** All fenced blocks of a page, in any language. */
export function blocksOf(page: string): Block[] {
  const markdown = readPage(page);
  return [...markdown.matchAll(FENCE)].map(({ index, groups = {} }) => ({
    place: `${page}:${markdown.slice(0, index).split('\n').length}`,
    language: groups['language'] ?? '',
    text: groups['text'] ?? '',
    reason: groups['reason'],
  }));
}

/** The blocks to type, with their output. */
export const stepsOf = (page: string): Step[] =>
  readRunbook(readPage(page).replaceAll(NOT_RUN, ''));

/** The program's pages that have blocks to type. */
export const pagesOf = (typist: keyof typeof TYPISTS): string[] =>
  PAGES.filter((page) => TYPISTS[typist].test(page) && stepsOf(page).length > 0);
