/**
 * The pages of `docs/` as HTML: a list with a search at `/docs/pages`, and each page below it. The search needs no script:
 * `?q=` is answered with the matching sections. `scripts/build-docs.mjs` renders the pages into the folder of the console.
 *
 * The pages are read at the first request for one (2 MB). If they were not built or cannot be read, their addresses alone
 * answer 503, and each request looks again.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { notFound } from '../http/problem.ts';
import { sendStaticFile, staticFile, type StaticFile } from '../serving/static-file.ts';
import { QUERY_LENGTH_MAX, searchPages, type SearchIndex } from './search-pages.ts';

interface Documentation {
  /** By the name below `/docs/pages/`: `operations/keys`. */
  readonly pages: ReadonlyMap<string, StaticFile>;
  readonly list: StaticFile;
  /** The list, cut at the places of the query and of its results. */
  readonly parts: readonly [string, string, string];
  readonly index: SearchIndex;
}

const HTML = 'text/html; charset=utf-8';

/** A page is text, a style sheet and an icon of our own. No script runs, and only the search is sent, to us. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice</title>
<h1>The documentation was not built</h1>
<p>Everything else runs. In a checkout <code>npm start</code> builds it; an image must be complete, so pull or build it
again. The reference of the API is at <a href="/docs">/docs</a>.</p></html>`;

/**
 * Declares `/docs/pages` and the pages below it.
 *
 * @param directory - `docs` in the folder of the built console
 */
export function registerDocsPages(app: ApiServer, directory: string): void {
  let read: Documentation | undefined;
  const documentation = (): Documentation | undefined => {
    try {
      return (read ??= readDocumentation(directory));
    } catch (error) {
      app.log.warn(
        { error },
        'the documentation could not be read; its pages answer 503. In a checkout npm start builds it; an image must be complete, so pull or build it again',
      );
      return undefined;
    }
  };

  app.get(
    '/docs/pages',
    { schema: { hide: true, querystring: z.object({ q: z.string().optional() }) } },
    (request, reply) => {
      void reply.headers(HEADERS);
      const found = documentation();
      if (!found) return reply.code(503).header('content-type', HTML).send(NOT_BUILT);
      const query = request.query.q?.trim().slice(0, QUERY_LENGTH_MAX) ?? '';
      if (query === '') return sendStaticFile(request, reply, found.list);
      return reply.header('content-type', HTML).send(renderResults(found, query));
    },
  );
  app.get(
    '/docs/pages/*',
    { schema: { hide: true, params: z.object({ '*': z.string() }) } },
    (request, reply) => {
      void reply.headers(HEADERS);
      const found = documentation();
      if (!found) return reply.code(503).header('content-type', HTML).send(NOT_BUILT);
      const page = found.pages.get(request.params['*']);
      return page
        ? sendStaticFile(request, reply, page)
        : sendProblem(request, reply, notFound('page'));
    },
  );
}

/** @throws Error if a file is missing, or the index is no JSON */
function readDocumentation(directory: string): Documentation {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const pages = new Map(
    names
      .filter((name) => name.endsWith('.html') && name !== 'list.html')
      .map((name) => [
        name.replaceAll('\\', '/').slice(0, -'.html'.length),
        asPage(readFileSync(join(directory, name), 'utf8')),
      ]),
  );
  const [start = '', rest = ''] = readFileSync(join(directory, 'list.html'), 'utf8').split(
    '%QUERY%',
  );
  const [middle = '', end = ''] = rest.split('%RESULTS%');
  const index = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8')) as SearchIndex;
  return { pages, list: asPage(`${start}${middle}${end}`), parts: [start, middle, end], index };
}

function asPage(text: string): StaticFile {
  const identity = Buffer.from(text);
  return staticFile(HTML, identity, { gzip: gzipSync(identity) });
}

function renderResults({ index, parts: [start, middle, end] }: Documentation, query: string) {
  const sections = searchPages(index, query);
  const items = sections.map(({ page, anchor, heading, title, excerpt }) => {
    const link = `<a href="${escape(page)}#${escape(anchor)}">${escape(heading)}</a>`;
    const ofPage = title === heading ? '' : ` <span>${escape(title)}</span>`;
    return `<li>${link}${ofPage}<p>${escape(excerpt)}</p></li>`;
  });
  const results =
    items.length === 0
      ? `<p role="status">No page has these words.</p>`
      : `<p role="status">${items.length} found</p><ol>${items.join('\n')}</ol>`;
  const found = `<section aria-label="Results"><h1>${escape(query)}</h1>${results}</section>`;
  return `${start}${escape(query)}${middle}${found}${end}`;
}

const escape = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
