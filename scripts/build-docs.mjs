/**
 * Renders the pages of `docs/` as HTML, with a search index. `build-console.mjs` calls it. Plain JavaScript, for the
 * same reasons.
 *
 * A page has no script, no inline style and only files of this origin. A raw HTML tag in a page is shown as text. A link to
 * another page leads to its HTML; a link to a file outside `docs/` becomes its path, because a browser cannot open it here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Marked } from 'marked';

/** The address of the list in the API. */
const ADDRESS = '/docs/pages';
const EXCERPT_LENGTH_MAX = 240;
/** A word of a heading, or of the title of its page, counts more than a word of the text. */
const WEIGHTS = { title: 4, heading: 8, text: 1 };
const TEXT_COUNT_MAX = 4;
/** A word counts less in a text that is longer than this many words, as in a table of all messages. */
const TEXT_LENGTH_WORDS = 120;
/** Pages that answer fewer questions, by the beginning of their path. Other pages count 1. */
const PAGE_FACTORS = {
  'reference/messages': 0.3,
  'reference/': 0.6,
  'spec/': 0.5,
  'design/': 0.5,
  'contributing/': 0.7,
};

/** Folder of `docs/` → its name in the list, in the order of readers. */
const FOLDERS = {
  '': 'Start',
  concepts: 'Concepts',
  'guides/send': 'Guides: send',
  'guides/receive': 'Guides: receive',
  'guides/manage': 'Guides: manage',
  operations: 'Operations',
  'operations/runbooks': 'Runbooks',
  reference: 'Reference',
  design: 'Design',
  'design/decisions': 'Decisions',
};

/**
 * @typedef {{ path: string, title: string, folder: string, html: string, headings: Heading[], sections: Section[] }} Page
 * @typedef {{ depth: number, text: string, anchor: string }} Heading
 * @typedef {{ page: string, title: string, heading: string, anchor: string, text: string }} Section
 */

/**
 * @param {string} docs - the folder of the pages
 * @param {string} style - the address of their style sheet
 * @returns {Record<string, string>} path below the built folder → content: a page each, `list.html` and `index.json`
 */
export function renderDocs(docs, style) {
  const paths = readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md'))
    .toSorted();
  const known = new Set(paths);
  const pages = paths.map((path) => readPage(path, readFileSync(join(docs, path), 'utf8'), known));
  /** @type {Record<string, string>} */
  const files = {};
  for (const page of pages)
    files[`${nameOf(page.path)}.html`] = frame(page.title, style, body(page));
  files['list.html'] = frame('Documentation', style, `%RESULTS%${list(pages)}`, '%QUERY%');
  files['index.json'] = JSON.stringify(searchIndex(pages.flatMap(({ sections }) => sections)));
  return files;
}

/** `operations/README.md` → `operations`; the page of all pages is `start`. @param {string} path */
const nameOf = (path) => path.replace(/\.md$/, '').replace(/(^|\/)README$/, '') || 'start';

/** @param {string} path */
const addressOf = (path) => `${ADDRESS}/${nameOf(path)}`;

/** @param {string} text */
const escape = (text) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** As GitHub makes them of headings. @param {string} heading */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');

/** The text of a token without its marks. @param {any} token @returns {string} */
function plainText(token) {
  if (token.type === 'html') return '';
  if (token.type === 'table')
    return [token.header, ...token.rows]
      .flat()
      .map((/** @type {any} */ cell) => plainText(cell))
      .join(' ');
  if (token.items) return token.items.map(plainText).join(' ');
  if (token.tokens) return token.tokens.map(plainText).join('');
  return token.text ?? '';
}

/**
 * @param {string} path
 * @param {string} markdown
 * @param {ReadonlySet<string>} known
 * @returns {Page}
 */
function readPage(path, markdown, known) {
  /** @type {Heading[]} */
  const headings = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const text = plainText({ tokens });
        const anchor = anchorOf(text);
        headings.push({ depth, text, anchor });
        return `<h${depth} id="${escape(anchor)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const target = targetOf(path, href, known);
        return target === undefined ? inner : `<a href="${escape(target)}">${inner}</a>`;
      },
      image: ({ text }) => escape(text),
      html: ({ text }) => (/^\s*<!--/.test(text) ? '' : escape(text)),
      code: ({ text }) => `<pre tabindex="0"><code>${escape(text)}</code></pre>\n`,
      table(token) {
        const row = (/** @type {any[]} */ cells, /** @type {string} */ tag) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`;
        const head = token.header.some(({ text }) => text !== '')
          ? `<thead>${row(token.header, 'th')}</thead>`
          : '';
        const rows = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="wide" tabindex="0"><table>${head}<tbody>${rows}</tbody></table></div>\n`;
      },
    },
  });
  const tokens = marked.lexer(markdown);
  const html = marked.parser(tokens);
  const title = headings[0]?.text ?? path;
  return {
    ...{ path, title, html, headings },
    folder: dirname(path) === '.' ? '' : dirname(path),
    sections: sectionsOf(tokens, addressOf(path), title),
  };
}

/**
 * @param {string} from
 * @param {string} href
 * @param {ReadonlySet<string>} known
 */
function targetOf(from, href, known) {
  if (/^(https?:|mailto:|#|\/)/.test(href)) return href;
  const [file = '', anchor] = href.split('#');
  const target = normalize(join(dirname(from), file)).replaceAll('\\', '/');
  if (!known.has(target)) return undefined;
  return `${addressOf(target)}${anchor === undefined ? '' : `#${anchor}`}`;
}

/**
 * A section is a heading with the text below it.
 *
 * @param {any[]} tokens
 * @param {string} page
 * @param {string} title
 */
function sectionsOf(tokens, page, title) {
  /** @type {Section[]} */
  const sections = [];
  for (const token of tokens) {
    if (token.type === 'heading') {
      const heading = plainText(token);
      sections.push({ page, title, heading, anchor: anchorOf(heading), text: '' });
    } else {
      const section = sections.at(-1);
      if (section) section.text = `${section.text} ${plainText(token)}`.trim();
    }
  }
  return sections;
}

/**
 * @param {readonly Section[]} sections
 * @returns the index for `packages/api/src/console/search-pages.ts`: the sections, and each word with the sections that
 *   have it and the weight that it has there
 */
function searchIndex(sections) {
  /** @type {Map<string, Map<number, number>>} */
  const weights = new Map();
  for (const [index, { page, title, heading, text }] of sections.entries()) {
    const words = wordsOf(text);
    const factor = factorOf(page);
    const textFactor = WEIGHTS.text / Math.max(1, Math.sqrt(words.length / TEXT_LENGTH_WORDS));
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    /** @type {Map<string, number>} */
    const all = new Map();
    const add = (/** @type {string} */ word, /** @type {number} */ weight) =>
      all.set(word, (all.get(word) ?? 0) + weight * factor);
    for (const [word, count] of counts) add(word, Math.min(count, TEXT_COUNT_MAX) * textFactor);
    for (const word of new Set(wordsOf(heading))) add(word, WEIGHTS.heading);
    for (const word of new Set(wordsOf(title))) add(word, WEIGHTS.title);
    for (const [word, weight] of all) {
      const places = weights.get(word) ?? new Map();
      places.set(index, Math.round(weight * 100) / 100);
      weights.set(word, places);
    }
  }
  const words = [...weights]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([word, places]) => [word, [...places].flat()]);
  return {
    sections: sections.map(({ text, ...section }) => ({
      ...section,
      excerpt: excerptOf(text),
    })),
    words: Object.fromEntries(words),
  };
}

/** The beginning, cut at the end of a word. @param {string} text */
const excerptOf = (text) =>
  text.length <= EXCERPT_LENGTH_MAX
    ? text
    : `${text.slice(0, EXCERPT_LENGTH_MAX).replace(/\s+\S*$/, '')} …`;

/** @param {string} page - an address */
const factorOf = (page) =>
  Object.entries(PAGE_FACTORS).find(([path]) => page.startsWith(`${ADDRESS}/${path}`))?.[1] ?? 1;

/** Lower case; a name with underscores also by its parts. @param {string} text @returns {string[]} */
const wordsOf = (text) =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).flatMap((word) =>
    word.includes('_') ? [word, ...word.split('_').filter((part) => part !== '')] : [word],
  );

/** @param {Page} page */
function body({ folder, html, headings }) {
  const below = headings.filter(({ depth }) => depth === 2);
  const contents =
    below.length < 2
      ? ''
      : `<nav aria-label="On this page"><ul>${below
          .map(({ text, anchor }) => `<li><a href="#${escape(anchor)}">${escape(text)}</a></li>`)
          .join('')}</ul></nav>`;
  return `<p>${escape(nameOfFolder(folder))}</p>${contents}<article>${html}</article>`;
}

/** @param {string} folder */
const nameOfFolder = (folder) => /** @type {Record<string, string>} */ (FOLDERS)[folder] ?? folder;

/** @param {readonly Page[]} pages */
function list(pages) {
  const folders = new Set([...Object.keys(FOLDERS), ...pages.map(({ folder }) => folder)]);
  const sections = [...folders].flatMap((folder) => {
    const of = pages.filter((page) => page.folder === folder);
    if (of.length === 0) return [];
    const items = of.map(
      ({ path, title }) => `<li><a href="${addressOf(path)}">${escape(title)}</a></li>`,
    );
    return [
      `<section><h2>${escape(nameOfFolder(folder))}</h2><ul>${items.join('\n')}</ul></section>`,
    ];
  });
  return `<h1>Documentation</h1><div class="folders">${sections.join('\n')}</div>`;
}

/**
 * @param {string} title
 * @param {string} style
 * @param {string} main
 * @param {string} [query]
 */
const frame = (title, style, main, query = '') =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(title)} · Sluice</title><link rel="stylesheet" href="${style}"><link rel="icon" href="/assets/icon.svg"></head><body>
<header><a href="${ADDRESS}">Documentation</a> <a href="/docs">HTTP API</a> <a href="/">Console</a>
<form action="${ADDRESS}" role="search"><label for="q">Search</label> <input id="q" name="q" type="search" maxlength="200" value="${query}"> <button>Search</button></form></header>
<main>${main}</main>
</body></html>
`;
