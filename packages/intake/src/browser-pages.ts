/**
 * What browsers ask of a Pipelines host besides events (`ingestion-conventions.md` §3.7): the
 * settings that the published client loads before its first call.
 */
import type { KeyRing } from './authenticate.ts';
import type { Page } from './server.ts';

const SETTINGS_CACHE_SECONDS = 60;

/**
 * The least that `@customerio/cdp-analytics-browser` works with. Events come back to the host that
 * the settings were asked from. An unknown key is 404, so that the client says so and stops.
 */
export function settingsPage(
  keys: KeyRing,
  writeKey: string,
  host: string,
  isSecure: boolean,
): Page {
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
