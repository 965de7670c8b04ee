/**
 * Pages for browsers on a Pipelines host (`ingestion-conventions.md` §3.7).
 *
 * They are the settings that the published clients load before their first call, a snippet of our own, and the small
 * client that the snippet loads (`../browser/`).
 *
 * Both scripts name the host that they were asked from, so that events come back to it.
 */
import { readFileSync } from 'node:fs';
import { problem } from './answer.ts';
import { endOfKey, hintOf, type Authentication } from '../auth/authenticate.ts';
import type { CredentialDependencies } from './credential-pages.ts';
import { JSON_TYPE, TEXT_TYPE, type Asked, type Page, type PageOf } from './page.ts';

const SETTINGS_CACHE_SECONDS = 60;

/** The names under which a client looks for the host of its events; a client that does not find its own sends to its vendor. */
const CLIENT_NAMES = ['Segment.io', 'Customer.io Data Pipelines'] as const;

/**
 * The least that `@segment/analytics-next` and `@customerio/cdp-analytics-browser` work with. Events come back to the
 * host that the settings were asked from. An unknown key is 404, so that the client logs it and stops.
 *
 * @param names - whose settings. Beside any other a client loads a part of itself, which the builds for script tags ask
 * their vendor's host for, so there is an answer with each name alone too.
 */
function settingsPage(
  deps: CredentialDependencies,
  writeKey: string,
  asked: Asked,
  isSecure: boolean,
  names: readonly string[],
): Page {
  if (!opensByKey(deps, 'pipelines.settings', writeKey, asked)) {
    return { status: '404 Not Found', contentType: TEXT_TYPE, body: 'no such write key' };
  }
  const address = { apiHost: `${asked.host}/v1`, protocol: isSecure ? 'https' : 'http' };
  const client = {
    apiKey: writeKey,
    ...address,
    addBundledMetadata: true,
    unbundledIntegrations: [],
    maybeBundledConfigIds: {},
    // No script to load. Otherwise each client would load a script for the names of the others.
    bundlingStatus: 'unbundled',
    versionSettings: { version: '4.4.7', componentTypes: [] },
  };
  const settings = {
    integrations: Object.fromEntries(names.map((name) => [name, client])),
    plan: {
      track: { __default: { enabled: true, integrations: {} } },
      identify: { __default: { enabled: true } },
      group: { __default: { enabled: true } },
    },
    edgeFunction: {},
    analyticsNextEnabled: true,
    middlewareSettings: {},
    enabledMiddleware: {},
    metrics: { sampleRate: 0, host: address.apiHost },
    legacyVideoPluginsEnabled: false,
    remotePlugins: [],
  };
  return {
    status: '200 OK',
    contentType: JSON_TYPE,
    body: JSON.stringify(settings),
    cacheSeconds: SETTINGS_CACHE_SECONDS,
  };
}

/**
 * `GET /sourceConfig/`: the settings that RudderStack's clients read before their first call. They know the address for
 * their events, and the answer names no other part to load or report. The answer to an unknown key is the one at which
 * they stop.
 */
function sourceConfigPage(deps: CredentialDependencies, asked: Asked, writeKey: string): Page {
  const { keys } = deps;
  const { authorization } = asked;
  const isInHeader = authorization !== '';
  const found = isInHeader
    ? keys.authenticatePipelines(authorization)
    : keys.authenticateWriteKey(writeKey);
  const hint = isInHeader ? hintOf(authorization) : endOfKey(writeKey);
  if (!opens(deps, 'pipelines.source_config', found, hint, asked) || found.outcome === 'unknown') {
    const body = JSON.stringify({ message: 'Invalid write key' });
    return { status: '400 Bad Request', contentType: JSON_TYPE, body };
  }
  const { environmentId } = found.workspace;
  const nothing = { enabled: false };
  const source = {
    id: `sluice-${environmentId}`,
    name: 'Sluice',
    enabled: true,
    workspaceId: String(environmentId),
    config: { statsCollection: { errors: nothing, metrics: nothing } },
    connections: [],
    destinations: [],
  };
  return {
    status: '200 OK',
    contentType: JSON_TYPE,
    body: JSON.stringify({ isHosted: true, source }),
  };
}

/**
 * A client with a mistyped key stops at this answer and sends no call, so the refusal of its key is recorded here.
 *
 * @param source - the name of the page.
 */
function opens(
  { recordUnauthorized }: CredentialDependencies,
  source: string,
  found: Authentication,
  hint: string | undefined,
  { mayUseDemo }: Asked,
): boolean {
  if (found.outcome === 'unknown') {
    const reason = hint === undefined ? 'missing' : 'not_in_force';
    recordUnauthorized(source, found.siteEnvironmentId, { reason, hint });
    return false;
  }
  const { environmentId, isDemo } = found.workspace;
  if (mayUseDemo || !isDemo) return true;
  recordUnauthorized(source, environmentId, { reason: 'demo_elsewhere', hint });
  return false;
}

const opensByKey = (
  deps: CredentialDependencies,
  source: string,
  writeKey: string,
  asked: Asked,
): boolean =>
  opens(deps, source, deps.keys.authenticateWriteKey(writeKey), endOfKey(writeKey), asked);

const SCRIPT_CACHE_SECONDS = 300;
const HOST = /^[\w.:[\]-]{1,255}$/;
const readScript = (name: string): string =>
  readFileSync(new URL(`../../browser/${name}`, import.meta.url), 'utf8');
const SNIPPET = readScript('snippet.js');
const CLIENT = readScript('client.js');

/** `GET /v1/analytics-js/snippet/`: the script for a page. The write key is given when it calls `load`. */
export function snippetPage(host: string, isSecure: boolean): Page {
  return scriptPage(SNIPPET, host, isSecure);
}

/**
 * `GET /v1/analytics-js/snippet/{writeKey}/analytics.min.js`: the client that the snippet loads. An unknown key is 404.
 */
export function clientPage(
  deps: CredentialDependencies,
  writeKey: string,
  asked: Asked,
  isSecure: boolean,
): Page {
  if (!opensByKey(deps, 'pipelines.client', writeKey, asked))
    return { status: '404 Not Found', contentType: TEXT_TYPE, body: 'no such write key' };
  // `<` cannot be in a key that is in force, but the script must not depend on that.
  const literal = JSON.stringify(writeKey).replaceAll('<', '\\u003c');
  return scriptPage(
    CLIENT.replace('__WRITE_KEY__', () => literal),
    asked.host,
    isSecure,
  );
}

function scriptPage(script: string, host: string, isSecure: boolean): Page {
  // It becomes a part of the script.
  if (!HOST.test(host)) {
    return {
      status: '400 Bad Request',
      contentType: JSON_TYPE,
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

/** The pages of browsers by their paths. */
export function browserPages(
  deps: CredentialDependencies,
  isHttps: boolean,
): Record<string, PageOf> {
  const settings =
    (names: readonly string[]): PageOf =>
    ([writeKey = ''], asked) =>
      settingsPage(deps, writeKey, asked, isHttps, names);
  const client: PageOf = ([writeKey = ''], asked) => clientPage(deps, writeKey, asked, isHttps);
  const path = '/v1/projects/:writeKey/settings';
  const [segment, customerio] = CLIENT_NAMES;
  return {
    [path]: settings(CLIENT_NAMES),
    [`/segment${path}`]: settings([segment]),
    [`/customerio${path}`]: settings([customerio]),
    '/sourceConfig': (_, asked, query) => sourceConfigPage(deps, asked, query('writeKey')),
    '/v1/analytics-js/snippet': (_, { host }) => snippetPage(host, isHttps),
    '/v1/analytics-js/snippet/:writeKey/analytics.min.js': client,
    '/analytics.js/v1/:writeKey/analytics.min.js': client,
  };
}
