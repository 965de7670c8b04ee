/**
 * Citations of the specification (`docs/spec/`) in code, comments, tests and pages: pure functions of texts.
 * `check-citations.ts` applies them to the repository.
 *
 * A citation is a section of a page (`account-billing.md` §4) or an invariant (I11). A section without a page belongs
 * to the page that the file named last. `spec §2` belongs to the page that the file defines by "`spec` is …". A section
 * after the name of an RFC, or of another public specification, is no citation of ours.
 */

/** A broken rule, with its place. */
export interface CitationProblem {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly problem: string;
}

/** A section or an invariant that a file cites. */
export interface Citation {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** Undefined: the file names no page before it. */
  readonly page: string | undefined;
  /** `§3.2` or `I11`. */
  readonly place: string;
  /**
   * Words after a section that begin with the title of a part of it, as in §4, Audit logs. Undefined: there are no such
   * words.
   */
  readonly words?: string | undefined;
}

/** A page of the specification. */
export interface SpecPage {
  readonly name: string;
  readonly headings: readonly Heading[];
}

interface Heading {
  /** From 1. */
  readonly line: number;
  /** `§3.2`, `I11`. Undefined: the heading has no number. */
  readonly place: string | undefined;
  /** Without the number. */
  readonly title: string;
  /** The lines up to the next heading. */
  readonly lines: readonly string[];
}

/** The page of invariants, which are cited without its name. */
const INVARIANTS_PAGE = 'account-conventions.md';

const HEADING = /^#{2,6} (?:(§\d+(?:\.\d+)*|I\d+)(?=\s|$))?(.*)/;
/** Public specifications whose sections comments cite. */
const OUTSIDE = String.raw`\bRFC \d+|\bOpenID Connect Core|\bW3C Trace Context|\bWHATWG HTML`;
const TOKEN = new RegExp(
  [
    String.raw`(?<page>[\w./-]*[\w-]\.md\b)`,
    `(?<outside>${OUTSIDE})`,
    String.raw`(?<alias>\bspec(?= §))`,
    String.raw`§\s?(?<first>\d+(?:\.\d+)*)(?:–(?<last>\d+(?:\.\d+)*))?`,
    String.raw`\b(?<invariant>I\d{1,2})\b`,
  ].join('|'),
  'g',
);
/** Between a page and its section; line breaks inside a comment too. */
const ADJACENT = /^[`'"\s,:()[\]*/#]*$/;
/** A title after a section; line breaks inside a comment too. */
const WORDS = /^,[\s*]+([A-Z][a-z]+(?:[\s*]+[a-z]+)*)/;
/** Between two sections of one page. */
const LIST = /^[\s*/#]*(?:[,;]|and|or|to)[\s*/#]*(?:(?:and|or|to)[\s*/#]*)?$/;

/** @param text - of the page. */
export function readSpecPage(name: string, text: string): SpecPage {
  const lines = text.split('\n');
  const starts = lines.flatMap((line, index) => (HEADING.test(line) ? [index] : []));
  const headings = starts.map((start, index) => ({
    line: start + 1,
    place: HEADING.exec(lines[start] ?? '')?.[1],
    title: HEADING.exec(lines[start] ?? '')?.[2]?.trim() ?? '',
    lines: lines.slice(start + 1, starts[index + 1]),
  }));
  return { name, headings };
}

/**
 * The citations of a file, in its order.
 *
 * @param pageNames - of the specification.
 * @param path - of the file, from the root. A page of the specification cites itself if it names no other.
 */
export function citationsOf(
  path: string,
  text: string,
  pageNames: ReadonlySet<string>,
): Citation[] {
  const own = path.startsWith('docs/spec/') ? path.slice('docs/spec/'.length) : '';
  const alias = /`spec` is[\s*]+`?([\w-]+\.md)/.exec(text)?.[1];
  let named = pageNames.has(own) ? own : undefined;
  // The page of the next section, if it follows at once, and the text that may stand between.
  let before: { end: number; page: string | undefined; gap: RegExp } | undefined;
  const citations: Citation[] = [];
  for (const match of text.matchAll(TOKEN)) {
    const { page, outside, alias: isAlias, first, last, invariant } = match.groups ?? {};
    const end = match.index + match[0].length;
    const line = lineAt(text, match.index);
    if (page !== undefined) {
      const name = page.slice(page.lastIndexOf('/') + 1);
      if (pageNames.has(name)) named = own === '' ? name : named;
      before = { end, page: name, gap: ADJACENT };
    } else if (outside !== undefined) {
      before = { end, page: '', gap: ADJACENT };
    } else if (isAlias !== undefined) {
      before = { end, page: alias, gap: ADJACENT };
    } else if (invariant !== undefined) {
      citations.push({ path, line, page: INVARIANTS_PAGE, place: invariant });
    } else if (first !== undefined) {
      const isAfter = before !== undefined && before.gap.test(text.slice(before.end, match.index));
      const target = isAfter ? before?.page : named;
      if (target !== '')
        for (const place of placesOf(first, last))
          citations.push({
            path,
            line,
            page: target,
            place,
            ...wordsAfter(text.slice(end, end + 100)),
          });
      // `spec` stands before each of its sections.
      const isOfAlias = isAfter && text.startsWith('spec', match.index - 'spec '.length);
      before = isOfAlias ? undefined : { end, page: target, gap: LIST };
    }
  }
  return citations;
}

/** A title may go on in the next line of a comment. */
function wordsAfter(text: string): Pick<Citation, 'words'> {
  const words = WORDS.exec(text)?.[1]?.replaceAll(/[\s*]+/g, ' ');
  return words === undefined ? {} : { words };
}

/** `§4.5–4.7` names three sections. */
function placesOf(first: string, last: string | undefined): string[] {
  if (last === undefined) return [`§${first}`];
  const parts = first.split('.');
  const from = Number(parts.pop());
  const to = Number(last.split('.').pop());
  return Array.from(
    { length: Math.max(1, to - from + 1) },
    (_, index) => `§${[...parts, from + index].join('.')}`,
  );
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length;

/** Citations of places that the pages do not have. */
export function lostCitations(
  citations: readonly Citation[],
  pages: readonly SpecPage[],
): CitationProblem[] {
  const places = new Map(
    pages.map(({ name, headings }) => [name, new Set(headings.map(({ place }) => place))]),
  );
  const titles = new Map(
    pages.map(({ name, headings }) => [name, headings.map(({ title }) => title)]),
  );
  return citations.flatMap(({ path, line, page, place, words }) => {
    if (page === undefined)
      return [{ path, line, problem: `cites ${place} and names no page: name it before` }];
    const isTitle =
      words === undefined ||
      titles.get(page)?.some((title) => title !== '' && words.startsWith(title));
    if (places.get(page)?.has(place) === true)
      return isTitle === false
        ? [{ path, line, problem: `cites "${words}" of ${place}, which has no such part` }]
        : [];
    const problem = places.has(page)
      ? `cites ${place}, which docs/spec/${page} does not have`
      : `cites ${place} of ${page}, which is no page of docs/spec/`;
    return [{ path, line, problem }];
  });
}

/**
 * Names of pages that are in no place of the repository, and paths that lead out of it.
 *
 * @param files - every file of the repository, from its root.
 */
export function pagesElsewhere(
  path: string,
  text: string,
  files: ReadonlySet<string>,
): CitationProblem[] {
  const names = new Set([...files].flatMap(suffixesOf));
  return [
    ...text.matchAll(/(?<![\w./${}'-])[\w./-]*[\w-]\.md\b|(?:\/work|\.\.)\/shared\b/g),
  ].flatMap((match) => {
    const [name] = match;
    const isHere = name.endsWith('.md') && names.has(name.replace(/^(?:\.{1,2}\/)+/, ''));
    const isUrl = /https?:\S*$/.test(text.slice(0, match.index));
    return isHere || isUrl
      ? []
      : [
          {
            path,
            line: lineAt(text, match.index),
            problem: `names ${name}, which is not in this repository`,
          },
        ];
  });
}

/** `a/b/c.md`, `b/c.md` and `c.md`. */
function suffixesOf(path: string): string[] {
  if (!path.endsWith('.md')) return [];
  const parts = path.split('/');
  return parts.map((_, index) => parts.slice(index).join('/'));
}

/**
 * Sections that do not end with the tests that hold them, and tests that are not there. A test that holds an invariant
 * must name it.
 *
 * @param textOf - of a file of the repository. Undefined: there is no such file.
 */
export function untestedSections(
  page: SpecPage,
  textOf: (path: string) => string | undefined,
): CitationProblem[] {
  const path = `docs/spec/${page.name}`;
  return page.headings.flatMap(({ line, place, lines }) => {
    const own = lines.filter((each) => each.trim() !== '');
    if (own.length === 0) return [];
    // The text after the word, up to the end: a long list goes on in the next lines.
    const start = own.findLastIndex((each) => each.startsWith('Tests: '));
    const tests =
      start < 0
        ? []
        : [
            ...own
              .slice(start)
              .join(' ')
              .matchAll(/`([^`]+)`/g),
          ];
    const isLast = own.slice(start + 1).every((each) => /^`\S+`[,.]?(?: `\S+`[,.]?)*$/.test(each));
    if (tests.length === 0 || !isLast)
      return [{ path, line, problem: 'does not end with "Tests: " and the paths of tests' }];
    return tests.flatMap(([, test = '']) => {
      const text = textOf(test);
      if (text === undefined) return [{ path, line, problem: `names ${test}, which is not there` }];
      const isNamed = place?.startsWith('I') !== true || new RegExp(`\\b${place}\\b`).test(text);
      return isNamed
        ? []
        : [{ path, line, problem: `names ${test}, which does not name ${place}` }];
    });
  });
}
