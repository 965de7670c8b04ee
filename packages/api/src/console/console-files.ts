/**
 * The files of the web console: its one page at the address of each screen, and its assets. Everything is read once and
 * kept in memory (0.2 MB). If the console was not built, its pages show that, and each request looks again; the API
 * itself works.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Database } from '@sluice/database/connection/connection';
import { findPortalOrigins } from '@sluice/database/webhooks/portal-links';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readPortalKey } from '../auth/portal-door.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { notFound } from '../http/problem.ts';
import { sendStaticFile, staticFile, type StaticFile } from '../serving/static-file.ts';
import { registerDocsPages } from './docs-pages.ts';

export interface ConsoleFilesEffects {
  readonly database: Database;
  /** As `scripts/build-console.mjs` made it. Absent: there is no console. */
  readonly consoleDirectory?: string;
}

/** As `packages/console/src/shell.tsx` has them; a test holds the two together. */
export const SCREEN_PATHS = [
  '/',
  '/start',
  '/live',
  '/events/:id',
  '/issues',
  '/webhooks',
  '/webhooks/:id',
  '/deliveries',
  '/portal-links',
  '/event-types',
  '/event-types/:name',
  '/applications',
  '/applications/:id',
  '/feeds',
  '/feeds/:name',
  '/people',
  '/people/:id',
  '/objects',
  '/objects/:type/:id',
  '/imports',
  '/imports/:id',
  '/keys',
  '/keys/:id',
  '/users',
  '/audit',
  '/audit/:id',
  '/billing',
  '/billing/credits',
  '/billing/purchases/:run',
  '/billing/usage',
  '/settings',
  '/device',
  '/fleet',
  '/docs/:tag',
  '/docs/:tag/:operation',
] as const;

/**
 * Paths of the design that name a part of a screen, each with the path of the screen. A parameter that the screen's path
 * lacks becomes one of its query.
 */
export const PART_PATHS = {
  '/issues/:code/:source/:field': '/issues',
  '/webhooks/:id/deliveries': '/webhooks/:id',
  '/webhooks/:id/deliveries/:delivery': '/webhooks/:id',
  '/webhooks/:id/replays': '/webhooks/:id',
  '/settings/sessions': '/settings',
} as const satisfies Readonly<Record<string, (typeof SCREEN_PATHS)[number]>>;

/** Path to which an identity provider sends the browser back (`console/return-address.ts`). */
const RETURN_PATH = '/sign-in/:account_id';

/**
 * As `packages/console/src/portal.tsx` has them. The path has the workspace and the link, which decide the origins that
 * may show it in a frame.
 */
export const PORTAL_PATHS = [
  '/portal/:workspace_id/:link_id',
  '/portal/:workspace_id/:link_id/webhooks/:webhook_id',
  '/portal/:workspace_id/:link_id/event-types',
  '/portal/:workspace_id/:link_id/event-types/:name',
] as const;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Only our own files and our own calls, no inline code, no text that becomes a script, and no frame around the page
 * except on the origins that may have the portal in one. So text from others in an event cannot run here. The one policy
 * of Trusted Types gives the literal path of a worker (`console/src/json/read-json.ts`).
 */
const pageHeaders = (frameAncestors: readonly string[] = []) => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(' ')}`,
    "require-trusted-types-for 'script'",
    'trusted-types sluice-worker',
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  // It names its assets by their content, so it is asked for again each time.
  'cache-control': 'no-cache',
});

export function registerConsoleFiles(
  app: ApiServer,
  { consoleDirectory, database }: ConsoleFilesEffects,
): void {
  if (consoleDirectory === undefined) return;
  registerDocsPages(app, join(consoleDirectory, 'docs'));
  const find = createFinder(consoleDirectory);
  const sendPage = (request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply => {
    const page = find(name);
    if (page) return sendStaticFile(request, reply, page);
    return reply.code(503).header('content-type', CONTENT_TYPES['.html']).send(NOT_BUILT);
  };

  for (const path of [...SCREEN_PATHS, RETURN_PATH]) {
    app.get(path, { schema: { hide: true } }, (request, reply) =>
      sendPage(request, reply.headers(pageHeaders()), 'index.html'),
    );
  }
  for (const [path, screen] of Object.entries(PART_PATHS)) {
    const params = z.record(z.string(), z.string());
    app.get(path, { schema: { hide: true, params } }, (request, reply) =>
      reply.redirect(addressOf(screen, request.params, new URL(request.url, 'http://a').search)),
    );
  }
  for (const path of PORTAL_PATHS) {
    const params = z.object({ workspace_id: z.string(), link_id: z.string() });
    app.get(path, { schema: { hide: true, params } }, async (request, reply) => {
      const { workspace_id: workspaceId, link_id: linkId } = request.params;
      const key = readPortalKey(`${workspaceId}/${linkId}`);
      const origins = key && (await findPortalOrigins(database, key));
      return sendPage(request, reply.headers(pageHeaders(origins)), 'portal.html');
    });
  }
  app.get(
    '/assets/:name',
    { schema: { hide: true, params: z.object({ name: z.string() }) } },
    (request, reply) => {
      const { name } = request.params;
      const asset = find(`assets/${name}`);
      if (!asset) return sendProblem(request, reply, notFound('asset'));
      const isNamedByContent = /-[A-Z0-9]{8}\.\w+$/.test(name);
      void reply.header(
        'cache-control',
        isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
      );
      return sendStaticFile(request, reply, asset);
    },
  );
}

/** The screen's address, with the parameters of the path and of the query that was asked for. */
function addressOf(screen: string, params: Readonly<Record<string, string>>, search: string) {
  const rest = new Map(Object.entries(params));
  const path = screen.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = rest.get(name) ?? '';
    rest.delete(name);
    return encodeURIComponent(value);
  });
  const query = new URLSearchParams(search);
  for (const [name, value] of rest) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

/** Paths are looked up among the folder's files, so no path leads out of it. */
function createFinder(directory: string): (path: string) => StaticFile | undefined {
  let files: ReadonlyMap<string, StaticFile> | undefined;
  return (path) => {
    if (!files && existsSync(join(directory, 'index.html'))) files = readFiles(directory);
    return files?.get(path);
  };
}

function readFiles(directory: string): Map<string, StaticFile> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    // Those are read by `docs-pages.ts`.
    (name) => !name.startsWith('docs'),
  );
  return new Map(
    names.flatMap((name) => {
      const contentType = CONTENT_TYPES[extname(name)];
      if (contentType === undefined) return [];
      const read = (end: string) =>
        names.includes(`${name}${end}`)
          ? readFileSync(join(directory, `${name}${end}`))
          : undefined;
      const coded = { br: read('.br'), gzip: read('.gz') };
      return [[name, staticFile(contentType, readFileSync(join(directory, name)), coded)] as const];
    }),
  );
}

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice</title>
<h1>The console was not built</h1>
<p>Everything else runs. The log of the start has the reason. In a checkout <code>npm start</code> builds it; an image
must be complete, so pull or build it again. The reference of the API is at <a href="/docs">/docs</a>.</p></html>`;
