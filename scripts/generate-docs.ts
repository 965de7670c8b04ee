/**
 * `npm run docs`: writes the pages of `docs/reference`, and the table of the newest measurement.
 * With `--check` it only compares, and fails if one is not current.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { markdownTable, newestSuite, type SuiteResult } from '../benchmarks/src/suite-table.ts';
import { findMessages } from './messages/find-messages.ts';
import { messagesPage } from './messages/messages-page.ts';
import { referencePages } from './reference/reference-pages.ts';

const ROOT = new URL('../', import.meta.url);

const RESULTS = new URL('benchmarks/results/', ROOT);

function suiteTable(): string {
  const suites = readdirSync(RESULTS)
    .filter((name) => name.endsWith('-suite.json'))
    .map((name) => JSON.parse(readFileSync(new URL(name, RESULTS), 'utf8')) as SuiteResult);
  return markdownTable(newestSuite(suites));
}

/** Puts a text between the marks of a section. */
function withSection(text: string, section: string, made: string, page: string): string {
  const begin = `<!-- ${section}:begin (npm run docs) -->`;
  const from = text.indexOf(begin) + begin.length;
  const to = text.indexOf(`<!-- ${section}:end -->`);
  if (to < 0 || from < begin.length) throw new Error(`${page} has no place for the ${section}`);
  return `${text.slice(0, from)}\n\n${made}\n\n${text.slice(to)}`;
}

const read = (page: string): string => {
  const file = new URL(page, ROOT);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

const isCheck = process.argv.includes('--check');
const BENCHMARKS = 'benchmarks/README.md';
const MESSAGES = 'docs/reference/messages.md';
const pages: Readonly<Record<string, string>> = {
  [BENCHMARKS]: withSection(read(BENCHMARKS), 'benchmarks', suiteTable(), BENCHMARKS),
  ...Object.fromEntries(
    Object.entries(await referencePages()).map(([name, text]) => [`docs/reference/${name}`, text]),
  ),
  // A test compares this page (`scripts/test/messages.test.ts`), so that a changed message fails no other check.
  ...(!isCheck && {
    [MESSAGES]: withSection(
      read(MESSAGES),
      'messages',
      messagesPage(findMessages(fileURLToPath(ROOT))),
      MESSAGES,
    ),
  }),
};
for (const [page, text] of Object.entries(pages)) {
  if (read(page) === text) continue;
  if (isCheck) {
    console.error(`${page} differs from the code or the newest results: npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(new URL(page, ROOT), text);
  }
}
