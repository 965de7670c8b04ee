/**
 * What browsers ask of a Pipelines host besides events (`ingestion-conventions.md` §3.7): the
 * settings that the published client loads before its first call, a snippet of our own, and the small
 * client that the snippet loads (`../browser/`).
 *
 * Both scripts name the host that they were asked from, so that events come back to it.
 */
import { readFileSync } from 'node:fs';
import { problem } from './answer.ts';
import type { KeyRing } from '../auth/authenticate.ts';
import type { Page } from './page.ts';

const SETTINGS_CACHE_SECONDS = 60;

/**
 * The least that `@customerio/cdp-analytics-browser` works with. Events come back to the host that
 * the settings were asked from. An unknown key is 404, so that the client says so and stops.
 */
function settingsPage(keys: KeyRing, writeKey: string, host: string, isSecure: boolean): Page {
  if (keys.authenticateWriteKey(writeKey).outcome === 'unknown') {
    return { status: '404 Not Found', contentType: 'text/plain', body: 'no such write key' };
  }
  const settings = {
    integrations: {
      'Customer.io Data Pipelines': {
        apiKey: writeKey,
        apiHost: `${host}/v1`,
        protocol: isSecure ? 'https' : 'http',
        addBundledMetadata: true,
        unbundledIntegrations: [],
        maybeBundledConfigIds: {},
        versionSettings: { version: '4.4.7', componentTypes: ['browser'] },
      },
    },
    plan: {
      track: { __default: { enabled: true, integrations: {} } },
      identify: { __default: { enabled: true } },
      group: { __default: { enabled: true } },
    },
    edgeFunction: {},
    analyticsNextEnabled: true,
    middlewareSettings: {},
    enabledMiddleware: {},
    metrics: { sampleRate: 0 },
    legacyVideoPluginsEnabled: false,
    remotePlugins: [],
  };
  return {
    status: '200 OK',
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify(settings),
    cacheSeconds: SETTINGS_CACHE_SECONDS,
  };
}

const SCRIPT_CACHE_SECONDS = 300;
const HOST = /^[\w.:[\]-]{1,255}$/;
const readScript = (name: string): string =>
  readFileSync(new URL(`../../browser/${name}`, import.meta.url), 'utf8');
const SNIPPET = readScript('snippet.js');
const CLIENT = readScript('client.js');

/** `GET /v1/analytics-js/snippet/`: what a page holds. The write key is given when it calls `load`. */
export function snippetPage(host: string, isSecure: boolean): Page {
  return scriptPage(SNIPPET, host, isSecure);
}

/** `GET /v1/analytics-js/snippet/{writeKey}/analytics.min.js`: what the snippet loads. An unknown key is 404. */
export function clientPage(keys: KeyRing, writeKey: string, host: string, isSecure: boolean): Page {
  if (keys.authenticateWriteKey(writeKey).outcome === 'unknown')
    return { status: '404 Not Found', contentType: 'text/plain', body: 'no such write key' };
  // `<` cannot be in a key that is in force, but the script must not depend on that.
  const literal = JSON.stringify(writeKey).replaceAll('<', '\\u003c');
  return scriptPage(
    CLIENT.replace('__WRITE_KEY__', () => literal),
    host,
    isSecure,
  );
}

function scriptPage(script: string, host: string, isSecure: boolean): Page {
  // It becomes a part of the script.
  if (!HOST.test(host)) {
    return {
      status: '400 Bad Request',
      contentType: 'application/json; charset=utf-8',
      body: problem(400, 'invalid', 'the Host header is not a host'),
    };
  }
  const origin = `${isSecure ? 'https' : 'http'}://${host}`;
  return {
    status: '200 OK',
    contentType: 'text/javascript; charset=utf-8',
    body: script.replaceAll('__ORIGIN__', () => origin),
    cacheSeconds: SCRIPT_CACHE_SECONDS,
  };
}

/** The pages of browsers by their paths: parameters and host in, page out. */
export function browserPages(
  keys: KeyRing,
  isHttps: boolean,
): Record<string, (parameters: readonly string[], host: string) => Page> {
  const client = ([writeKey = '']: readonly string[], host: string) =>
    clientPage(keys, writeKey, host, isHttps);
  const snippet = (_: readonly string[], host: string) => snippetPage(host, isHttps);
  return {
    '/v1/projects/:writeKey/settings': ([writeKey = ''], host) =>
      settingsPage(keys, writeKey, host, isHttps),
    '/v1/analytics-js/snippet': snippet,
    '/v1/analytics-js/snippet/': snippet,
    '/v1/analytics-js/snippet/:writeKey/analytics.min.js': client,
    '/analytics.js/v1/:writeKey/analytics.min.js': client,
  };
}
