/**
 * A real Chromium that opens one page, as a visitor's does. `npm test` installs it if it is missing
 * (`scripts/install.mjs`).
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NPM_PATH_FILE = fileURLToPath(
  new URL('../../../../node_modules/.sluice-chromium/path', import.meta.url),
);

/** @returns an absolute path. */
export function chromiumPath(): string {
  const given = process.env['TEST_CHROMIUM'];
  const ofNpm = existsSync(NPM_PATH_FILE) ? readFileSync(NPM_PATH_FILE, 'utf8') : undefined;
  const found = [given, 'chromium', 'chromium-browser', 'google-chrome', ofNpm].find(
    (command) =>
      command !== undefined &&
      spawnSync(command, ['--version', '--no-sandbox'], { stdio: 'ignore' }).status === 0,
  );
  if (found === undefined)
    throw new Error('no Chromium: node scripts/install.mjs --with-chromium, or set TEST_CHROMIUM');
  if (found.includes('/')) return found;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, found)).find((path) => existsSync(path)) ?? found;
}

export interface OpenPage {
  /** Output of the page on its console. */
  readonly console: () => string;
  /**
   * Requests to any other machine, except Chromium's to its maker: `GET http://host/path`, `CONNECT host:443`. All are
   * refused.
   */
  readonly askedElsewhere: () => readonly string[];
  close(): Promise<void>;
}

/**
 * Serves the documents from a loopback port and opens `/`. Waits until the browser asks for it: on a busy machine its
 * start takes longer than calls may.
 *
 * @param pages - HTML by path.
 * @param scripts - folders of scripts, or one of them, by the start of their path.
 */
export async function openInChromium(
  pages: Readonly<Record<string, string>>,
  scripts: Readonly<Record<string, string>> = {},
): Promise<OpenPage> {
  const opened = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    if (path === '/') opened.resolve();
    const [start = '', folder = ''] =
      Object.entries(scripts).find(([each]) => path.startsWith(each)) ?? [];
    const script = join(folder, path.slice(start.length));
    if (folder !== '' && existsSync(script)) {
      response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' });
      response.end(readFileSync(script));
      return;
    }
    const html = pages[path];
    response.writeHead(html === undefined ? 404 : 200, {
      'content-type': 'text/html; charset=utf-8',
    });
    response.end(html ?? '');
  });
  const port = await listen(server);
  const { proxy, asked } = createClosedProxy();
  const proxyPort = await listen(proxy);
  const profile = await mkdtemp(join(tmpdir(), 'sluice-chromium-'));
  const browser = spawn(
    chromiumPath(),
    [
      ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
      ...['--enable-logging=stderr', '--v=0', '--remote-debugging-port=0'],
      `--user-data-dir=${profile}`,
      // Loopback goes past it.
      `--proxy-server=http://127.0.0.1:${proxyPort}`,
      `http://127.0.0.1:${port}/`,
    ],
    { detached: true, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  browser.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = new Promise((resolve) => browser.once('close', resolve));
  void ended.then(() => opened.reject(new Error(`Chromium ended:\n${said}`)));
  await opened.promise;
  return {
    console: () => said,
    askedElsewhere: () => asked.filter((request) => !OF_CHROMIUM.test(request)),
    async close() {
      // In a group of its own: all of its processes end.
      process.kill(-(browser.pid as number), 'SIGKILL');
      await ended;
      for (const each of [server, proxy]) {
        each.close();
        each.closeAllConnections();
      }
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** The time, updates and accounts, in spite of its command line. */
const OF_CHROMIUM = /^\w+ (?:http:\/\/)?[\w.-]+\.(?:google|googleapis|gvt1)\.com[:/]/;

/** Refuses requests to other machines, and remembers them. */
function createClosedProxy(): { proxy: Server; asked: string[] } {
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
    response.writeHead(403).end();
  });
  proxy.on('connect', (request, socket) => {
    asked.push(`CONNECT ${request.url ?? ''}`);
    // A browser that is killed resets it.
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  return { proxy, asked };
}
