/**
 * The check of citations (`scripts/citations.ts`), on made-up texts. It finds each form of them and each kind of fault.
 */
import { describe, expect, test } from 'vitest';
import {
  citationsOf,
  lostCitations,
  pagesElsewhere,
  readSpecPage,
  untestedSections,
} from '../citations.ts';

const PAGES = new Set(['ingestion.md', 'account.md', 'account-conventions.md']);

const citedIn = (text: string, path = 'packages/domain/src/a.ts'): (string | undefined)[] =>
  citationsOf(path, text, PAGES).map(({ page, place }) => `${page} ${place}`);

describe('citations are found', () => {
  test.each([
    ['/** The rule (`ingestion.md` §3.2). */', ['ingestion.md §3.2']],
    ['// ingestion.md §3.2 says so', ['ingestion.md §3.2']],
    ['/**\n * The rule (`ingestion.md`\n * §3.2).\n */', ['ingestion.md §3.2']],
    ['See [ingestion.md](../spec/ingestion.md) §3.', ['ingestion.md §3']],
    [
      '`ingestion.md` §2, §7; `account.md` §3.1',
      ['ingestion.md §2', 'ingestion.md §7', 'account.md §3.1'],
    ],
    ['`account.md` §1.4 to §1.6', ['account.md §1.4', 'account.md §1.6']],
    ['`account.md` §4.5–4.7', ['account.md §4.5', 'account.md §4.6', 'account.md §4.7']],
    ['`account.md` §3.2, I27', ['account.md §3.2', 'account-conventions.md I27']],
    ["test('I29, I31: sums agree')", ['account-conventions.md I29', 'account-conventions.md I31']],
  ])('in %j', (text, cited) => {
    expect(citedIn(text)).toEqual(cited);
  });

  test('a section alone belongs to the page named last, and a section of a public specification is left out', () => {
    const text = '`ingestion.md` §1\nRFC 9110 §8.4\nRFC 6749, §4.4\n§2\n`account.md` §3\n(§4)';
    expect(citedIn(text)).toEqual([
      'ingestion.md §1',
      'ingestion.md §2',
      'account.md §3',
      'account.md §4',
    ]);
  });

  test('the word spec stands for the page that the file names for it, for one section', () => {
    const text =
      "/** `spec` is ingestion.md, `§` are sections of account.md. */\ntest('spec §2, §1.6: a')";
    expect(citedIn(text)).toEqual(['ingestion.md §2', 'account.md §1.6']);
  });

  test('a page cites itself if it names no other page', () => {
    const text = '## §1 One\n[account.md](account.md) §4.1 and §4.2, then §1';
    expect(citedIn(text, 'docs/spec/ingestion.md')).toEqual([
      'ingestion.md §1',
      'account.md §4.1',
      'account.md §4.2',
      'ingestion.md §1',
    ]);
  });
});

describe('citations that lead nowhere', () => {
  const pages = [
    readSpecPage(
      'ingestion.md',
      '# Page\n\n## §1 One\n\n### §1.2 Two\n\n### Audit logs\n\n### I3\n',
    ),
  ];
  const lost = (text: string) =>
    lostCitations(citationsOf('a.ts', text, new Set(['ingestion.md'])), pages);

  test('sections that a page has pass', () => {
    expect(lost('`ingestion.md` §1, §1.2; §1, Audit\n * logs of an account, I see')).toEqual([]);
  });

  test.each([
    ['`ingestion.md` §1.3', 'cites §1.3, which docs/spec/ingestion.md does not have'],
    ['`ingestion.md` §1, Audit trails', 'cites "Audit trails" of §1, which has no such part'],
    ['\n§1', 'cites §1 and names no page: name it before'],
    ['`other.md` §1', 'cites §1 of other.md, which is no page of docs/spec/'],
    ['spec §1', 'cites §1 and names no page: name it before'],
    ['I4', 'cites I4 of account-conventions.md, which is no page of docs/spec/'],
  ])('%j fails', (text, problem) => {
    const line = text.split('\n').length;
    expect(lost(text)).toEqual([{ path: 'a.ts', line, problem }]);
  });
});

describe('pages elsewhere', () => {
  const files = new Set(['docs/errors.md', 'README.md']);

  test.each([
    'see docs/errors.md',
    'see `errors.md` and ../../README.md',
    'https://example.com/a/other.md',
    "join(folder, 'other.md')",
    '`${name}.md`',
  ])('%j passes', (text) => {
    expect(pagesElsewhere('a.ts', text, files)).toEqual([]);
  });

  test.each(['design/style.md', '/work/shared', '../shared'])(
    'a comment that names %s fails',
    (name) => {
      expect(pagesElsewhere('a.ts', `// \n// see ${name}`, files)).toEqual([
        { path: 'a.ts', line: 2, problem: `names ${name}, which is not in this repository` },
      ]);
    },
  );
});

describe('the tests of a section', () => {
  const texts: Record<string, string> = { 'a.test.ts': "test('I1: a')", 'b.test.ts': '' };
  const problemsOf = (text: string) =>
    untestedSections(readSpecPage('ingestion.md', text), (path) => texts[path]).map(
      ({ problem }) => problem,
    );

  test('stand at its end, in one line or more; a heading without a text needs no tests', () => {
    const text =
      '## §1 One\n### §1.1 Two\nRule.\n\nTests: `a.test.ts`,\n`b.test.ts`\n### I1\nTests: `a.test.ts`\n';
    expect(problemsOf(text)).toEqual([]);
  });

  test.each([
    ['## §1 One\nRule.\n', 'does not end with "Tests: " and the paths of tests'],
    [
      '## Named\nTests: `a.test.ts`\n\nMore.\n',
      'does not end with "Tests: " and the paths of tests',
    ],
    ['## §1 One\nTests: `c.test.ts`\n', 'names c.test.ts, which is not there'],
    ['### I1\nRule.\n\nTests: `b.test.ts`\n', 'names b.test.ts, which does not name I1'],
  ])('%j fails', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });
});
