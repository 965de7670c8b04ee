/** The description of intake agrees with intake: every call is there, and every example is taken. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { methodOf, routes } from '@sluice/intake/calls/calls';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
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
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, unknown>>;
}

/** The whole description, for its references. */
interface Description {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: object;
}

/** The same call at a second path, which the description of the first mentions. */
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
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
beforeAll(async () => {
  fleet = await startFleet();
  const { paths, components } = (await (
    await fetch(`${fleet.api.url}/openapi.json`)
  ).json()) as Description;
  ajv.addSchema({ paths, components }, 'openapi');
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { servers }]) => servers !== undefined)
      .map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
  );
});
afterAll(() => fleet.close());

test('the document describes exactly the routes of intake', () => {
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

test('a body that the description requires is refused when it is missing', async () => {
  const required = operations.filter(([, , { requestBody }]) => requestBody?.required);
  expect(required.length).toBeGreaterThan(15);
  for (const [method, path, { security, requestBody }] of required) {
    const scheme = Object.keys(security[0] ?? {})[0] ?? '';
    const answer = await fetch(`${fleet.intake.url}${path.replaceAll(/\{\w+\}/g, '1')}`, {
      method,
      headers: {
        'content-type': Object.keys(requestBody?.content ?? {})[0] ?? '',
        'x-strict-mode': '1',
        ...(AUTHORIZATION[scheme] !== undefined && { authorization: AUTHORIZATION[scheme] }),
      },
    });
    await answer.arrayBuffer();
    expect({ method, path, status: answer.status }).toEqual({ method, path, status: 400 });
  }
});

/** The pointer to the schema of an answer, through the shared answers. */
function answerPointer(path: string, method: string, status: number): string {
  const parts = ['paths', path, method.toLowerCase(), 'responses', String(status)];
  const pointer = parts
    .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/');
  const operation = operations.find(([verb, at]) => verb === method && at === path)?.[2];
  const { $ref } = (operation?.responses[status] ?? {}) as { readonly $ref?: string };
  return `openapi${$ref ?? `#/${pointer}`}/content/application~1json/schema`;
}

// Found by schemathesis: the bodies were described like the API's, which have the id of the request.
test('every refusal fits its description: without a key, of a body that is no JSON, of a wrong value', async () => {
  const wrong: [headers: Record<string, string>, body: string][] = [
    [{}, '{}'],
    [AUTHORIZATION, 'no JSON'],
    [
      AUTHORIZATION,
      '{"userId":"ada","event":7,"type":[],"batch":[{"type":"track"}],"messages":[{}],"name":7}',
    ],
  ];
  const misses: string[] = [];
  let refusals = 0;
  for (const [method, path, { security, requestBody }] of operations) {
    const isJson = requestBody?.content['application/json'] !== undefined;
    const scheme = Object.keys(security[0] ?? {})[0] ?? '';
    for (const [keys, body] of isJson ? wrong : wrong.slice(0, 1)) {
      const answer = await fetch(`${fleet.intake.url}${path.replaceAll(/\{\w+\}/g, '1')}`, {
        method,
        headers: {
          'content-type': 'application/json',
          'x-strict-mode': '1',
          ...(keys[scheme] !== undefined && { authorization: keys[scheme] }),
        },
        ...(method !== 'GET' && { body }),
      });
      if (answer.ok && answer.status !== 207) continue;
      refusals += 1;
      const fits = ajv.validate(
        { $ref: answerPointer(path, method, answer.status) },
        await answer.json(),
      );
      if (!fits) misses.push(`${method} ${path} ${answer.status}: ${ajv.errorsText()}`);
    }
  }
  expect(misses).toEqual([]);
  expect(refusals).toBeGreaterThan(40);
});
