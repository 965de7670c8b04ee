/** What the description says of intake is what intake does: every call is there, and every example is taken. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { methodOf, routes } from '@sluice/intake/calls/calls';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly example?: string | number;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly servers?: unknown;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, unknown>>;
}

/** The same call at a second path, of which the description of the first tells. */
const ALIASES = new Set([
  ...['i', 't', 'p', 's', 'g', 'a', 'b', 'import'].map((path) => `POST /v1/${path}`),
  'POST /push/events',
  'POST /v2/entity',
  'POST /v2/batch',
]);

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const AUTHORIZATION: Readonly<Record<string, string>> = {
  write_key: basic(`${DEMO.writeKey}:`),
  site_key: basic(`${DEMO.siteId}:${DEMO.apiKey}`),
};

let fleet: Fleet;
let operations: (readonly [method: string, path: string, operation: Operation])[];
beforeAll(async () => {
  fleet = await startFleet();
  const { paths } = (await (await fetch(`${fleet.api.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Operation>>;
  };
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { servers }]) => servers !== undefined)
      .map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
  );
});
afterAll(() => fleet.close());

test('every route of intake is described, and nothing else', () => {
  const described = operations.map(
    ([method, path]) => `${method} ${path.replaceAll(/\{\w+\}/g, '*')}`,
  );
  const served = routes
    .map((route) => `${methodOf(route)} ${route.pattern.replaceAll(/:\w+/g, '*')}`)
    .filter((route) => !ALIASES.has(route));
  const pages = ['POST /v1/stream', 'GET /auth', 'GET /api/v1/accounts/region'];
  expect(described.toSorted()).toEqual([...served, ...pages].toSorted());
});

test('every example is taken, with an answer that is described', async () => {
  // The link of a message, once the worker knows of the message.
  const order = ({ operationId }: Operation) => (operationId === 'unsubscribe' ? 1 : 0);
  const answers: string[] = [];
  for (const [method, path, operation] of operations.toSorted(
    ([, , one], [, , other]) => order(one) - order(other),
  )) {
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(operation.parameters?.find((each) => each.name === name)?.example ?? ''),
    );
    const [[type, { example }] = ['', {}]] = Object.entries(operation.requestBody?.content ?? {});
    const [scheme = ''] = Object.keys(operation.security[0] ?? {});
    const send = () =>
      fetch(`${fleet.intake.url}${url}`, {
        method,
        headers: {
          ...(AUTHORIZATION[scheme] !== undefined && { authorization: AUTHORIZATION[scheme] }),
          ...(type !== '' && { 'content-type': type }),
          'x-strict-mode': '1',
        },
        ...(example !== undefined && {
          body: typeof example === 'string' ? example : JSON.stringify(example),
        }),
      });
    const answer =
      operation.operationId === 'unsubscribe'
        ? await vi.waitUntil(async () => {
            const tried = await send();
            return tried.ok && tried;
          }, WAIT)
        : await send();
    answers.push(
      `${operation.operationId} ${answer.status} ${answer.ok ? '' : await answer.text()}`,
    );
    expect(Object.keys(operation.responses)).toContain(String(answer.status));
  }
  expect(answers.filter((each) => !/ 20[04] $/.test(each))).toEqual([]);
});
