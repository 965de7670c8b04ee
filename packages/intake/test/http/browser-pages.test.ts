import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { UnauthorizedRecorder } from '../../src/auth/unauthorized-recorder.ts';
import { browserPages, clientPage, snippetPage } from '../../src/http/browser-pages.ts';

const keys = new KeyRing();
const KEY = `a"</script>'`;
keys.replace([
  {
    kind: 'pipelines',
    siteId: null,
    secretHash: createHash('sha256').update(KEY).digest(),
    environmentId: 1,
    accountId: '1',
    phoneIdentifies: false,
  },
]);

const unauthorized = new UnauthorizedRecorder();
const deps = { keys, recordUnauthorized: unauthorized.record.bind(unauthorized) };

const asking = (host: string, authorization = '') => ({ host, authorization, mayUseDemo: false });

test.each([`x'+alert(1)+'`, 'x</script>', 'a b', '', 'x'.repeat(256), 'a/b', '$&'])(
  'a Host of %j does not get into a script',
  (host) => {
    expect(snippetPage(host, false)).toMatchObject({ status: '400 Bad Request' });
    expect(clientPage(deps, KEY, asking(host), false)).toMatchObject({ status: '400 Bad Request' });
  },
);

test('a write key with quotes and markup stays a text inside the client', () => {
  const { body } = clientPage(deps, KEY, asking('intake.example:8080'), true);
  expect(body).toContain(`var writeKey = "a\\"\\u003c/script>'";`);
  expect(body).toContain(`var origin = 'https://intake.example:8080';`);
  // It parses, which a key that broke out of its quotes would not let it.
  expect(() => new Script(body)).not.toThrow();
});

describe('pages that published clients request before their first call', () => {
  const pages = browserPages(deps, true);
  const ask = async (
    path: string,
    { writeKey = KEY, authorization = '' }: { writeKey?: string; authorization?: string } = {},
  ) => {
    const page = await pages[path]?.(
      [writeKey],
      asking('in.example', authorization),
      () => writeKey,
    );
    if (page === undefined) throw new Error(`no page ${path}`);
    return { ...page, json: () => JSON.parse(page.body) as Record<string, unknown> };
  };
  const SETTINGS = '/v1/projects/:writeKey/settings';

  test.each([
    ['', ['Segment.io', 'Customer.io Data Pipelines']],
    ['/segment', ['Segment.io']],
    ['/customerio', ['Customer.io Data Pipelines']],
  ])('settings under %j name %j, each with the host that was asked', async (prefix, names) => {
    const { integrations, metrics } = (await ask(`${prefix}${SETTINGS}`)).json() as {
      integrations: Record<string, object>;
      metrics: object;
    };
    expect(Object.keys(integrations)).toEqual(names);
    for (const settings of Object.values(integrations))
      // Clients load a script for every value that is not `unbundled`.
      expect(settings).toMatchObject({
        apiKey: KEY,
        apiHost: 'in.example/v1',
        protocol: 'https',
        bundlingStatus: 'unbundled',
      });
    expect(metrics).toEqual({ sampleRate: 0, host: 'in.example/v1' });
  });

  test('an unknown key gets no settings', async () => {
    expect(await ask(SETTINGS, { writeKey: 'other' })).toMatchObject({ status: '404 Not Found' });
  });

  const basic = (key: string) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`;

  test.each([
    ['in the query', {}],
    ['in the header', { writeKey: '', authorization: basic(KEY) }],
  ])('the source of RudderStack’s clients, by the key %s', async (_, given) => {
    const page = await ask('/sourceConfig', given);
    expect(page.json()).toMatchObject({
      source: {
        id: expect.any(String),
        enabled: true,
        destinations: [],
        config: { statsCollection: { errors: { enabled: false }, metrics: { enabled: false } } },
      },
    });
    // It is of the key, which is not in the path.
    expect(page.cacheSeconds).toBeUndefined();
  });

  test.each([
    ['in the query', { writeKey: 'other' }],
    ['in the header', { authorization: basic('other') }],
  ])('a client of RudderStack stops at an unknown key %s', async (_, given) => {
    const page = await ask('/sourceConfig', given);
    expect(page.status).toBe('400 Bad Request');
    expect(page.json()).toEqual({ message: 'Invalid write key' });
  });
});
