/**
 * Documented bounds of bodies and queries.
 *
 * The description and the code accept the same values, at each bound and beyond it.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { createLogger } from '@sluice/platform/process/logger';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { z } from 'zod';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiEffects } from '../../src/api-effects.ts';
import { buildServer } from '../../src/server.ts';
import type { ApiServer } from '../../src/http/api-server.ts';
import { type JsonSchema, type ProbeWorld, probesOf, sampleOf } from './probes.ts';

interface Operation {
  readonly operationId: string;
  readonly servers?: unknown;
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
  };
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: JsonSchema;
  }[];
}

interface Route {
  readonly method: string | readonly string[];
  readonly url: string;
  readonly schema?: { readonly body?: z.ZodType; readonly querystring?: z.ZodType };
}

const CATALOGUE = readCatalogue(undefined);

const SAMPLES = {
  timezone: 'Europe/Berlin',
  endpoint: 'https://example.com/hook',
  run_id: 'run_1',
  // It has neither states nor postal codes.
  country: 'HK',
  'portal_origins[]': 'https://app.example.com',
  'ip_allowlist[]': '10.0.0.0/8',
  'attribute_filters[]': { field: 'a', operator: 'exists' },
  person: { id: 'ada' },
  filter: { object_attribute: { field: 'plan', operator: 'exists' } },
  createPortalLink: { for: 'acme/jo', webhook_ids: [1] },
  createReplay: { states: ['delivered'] },
  createApplicationReplays: { states: ['delivered'] },
  inviteUser: { email: 'a@example.com', role: 'member', environment_ids: [] },
  'email_domains[]': 'example.com',
  putIdentityProvider: {
    ...{ issuer: 'https://login.example.com', client_id: 'a' },
    email_domains: ['example.com'],
  },
  getStatistics: { metric: 'events' },
  createAuditLogExport: {
    ...{ object_type: 'account', object_id: '1' },
    ...{ action: 'updated', attribute_name: 'name' },
  },
  listAuditLogs: { object_type: 'account', object_id: '1', action: 'updated' },
  email: 'a@example.com',
  website: 'https://example.com',
  data_file_url: 'https://example.com/a.csv',
  payment_method_id: 'pm_card_visa',
  account: { name: 'a' },
  environment: { name: 'a' },
  updateUser: { role: 'member' },
  purchaseCredits: { llm: { quantity: CATALOGUE.credits.llm.multiple } },
  completeSignup: {
    ...{ email: 'a@example.com', code: '123456', company_name: 'a', data_center: 'us' },
    ...{ first_name: 'a', last_name: 'a' },
  },
  createCredential: { name: 'a', type: 'service_account', role: 'member' },
};

/** Conditions that a schema of one field cannot have, by operation and field, with the place of their description. */
const ELSEWHERE: readonly (readonly [where: RegExp, why: string])[] = [
  [/attribute_filters\/0\/(?:operator|values)/, 'the operator decides about the values'],
  [/^createCredential \/ip_allowlist/, 'an address or a block of addresses'],
  [/^listAuditLogs \?object_type/, 'action and object_id need it'],
  [/ \/import\/encoding$/, 'the encodings of the WHATWG Encoding Standard'],
  [/ \/account\/timezone$/, 'the time zones of Node'],
  [/ \/address\/country$/, 'the countries of ISO 3166-1'],
  [/(?:\/quantity|\/pack|\/skus\/add\/0|\?plan_id)$/, 'the catalogue decides, after the schema'],
];

const channel = 'fastify.initialization';
const routes = new Map<string, NonNullable<Route['schema']>>();
const collect = (message: unknown): void => {
  const { fastify } = message as { fastify: ApiServer };
  fastify.addHook('onRoute', (given) => {
    const route = given as unknown as Route;
    for (const method of [route.method].flat())
      routes.set(`${method} ${route.url}`, route.schema ?? {});
  });
};

let app: ApiServer;
let document: { readonly paths: Record<string, Record<string, Operation>> };
let world: ProbeWorld;
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
beforeAll(async () => {
  // The effects that declarations of routes need. The test calls only the description.
  const declared: Partial<ApiEffects> = {
    logger: createLogger('bounds', 'silent'),
    catalogue: CATALOGUE,
    trustedProxies: [],
    addressConnectionCountMax: 0,
    demoHosts: [],
    recordRequest: () => {},
    newId: () => 'bounds',
  };
  subscribe(channel, collect);
  app = await buildServer(declared as ApiEffects);
  unsubscribe(channel, collect);
  document = (await app.inject('/openapi.json')).json();
  ajv.addSchema(document, 'openapi');
  const resolve = (reference: string): JsonSchema =>
    reference
      .slice('#/'.length)
      .split('/')
      .reduce(
        (part: unknown, key) => (part as Record<string, unknown>)[key],
        document,
      ) as JsonSchema;
  world = { resolve, samples: SAMPLES };
});
afterAll(() => app.close());

const operationsOfApi = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { servers }]) => servers === undefined)
      .map(([method, operation]) => ({
        operation,
        code: routes.get(`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`) ?? {},
      })),
  );

const compiled = (schema: JsonSchema) =>
  ajv.compile(
    JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"openapi#/')) as object,
  );

const isElsewhere = (name: string): boolean => ELSEWHERE.some(([where]) => where.test(name));

test('a body is documented as the code checks it', () => {
  const differing: string[] = [];
  let count = 0;
  for (const { operation, code } of operationsOfApi()) {
    const { operationId, requestBody } = operation;
    const schema = requestBody?.content['application/json']?.schema;
    expect([operationId, schema === undefined]).toEqual([operationId, code.body === undefined]);
    if (!schema || !code.body) continue;
    const fits = compiled(schema);
    for (const { pointer, what, value } of probesOf(schema, world, operationId)) {
      count++;
      const [isDocumented, isTaken] = [fits(value), code.body.safeParse(value).success];
      const name = `${operationId} ${pointer}`;
      if (isDocumented !== isTaken && !isElsewhere(name))
        differing.push(
          `${name}: ${what}: ${isTaken ? 'only the code' : 'only the description'} takes it`,
        );
    }
  }
  expect(differing).toEqual([]);
  expect(count).toBeGreaterThan(4_000);
});

test('the sample of each body is valid, so that a probe of one field fails by that field alone', () => {
  const refused = operationsOfApi().flatMap(({ operation, code }) => {
    const schema = operation.requestBody?.content['application/json']?.schema;
    if (!schema || !code.body) return [];
    const sample = sampleOf(schema, world, operation.operationId);
    if (compiled(schema)(sample) && code.body.safeParse(sample).success) return [];
    return [`${operation.operationId}: ${JSON.stringify(sample)}`];
  });
  expect(refused).toEqual([]);
});

/** Parameters that are written as text: their texts, and their numbers in digits. */
function asText({ value, what }: { value: unknown; what: string }, { type }: JsonSchema) {
  const isOfType =
    (typeof value === 'string' && (type === 'string' || type === undefined)) ||
    (typeof value === 'number' && (type === 'integer' || type === 'number'));
  return isOfType ? [{ what, value, text: String(value) }] : [];
}

test('a query is documented as the code checks it', () => {
  const differing: string[] = [];
  let count = 0;
  for (const { operation, code } of operationsOfApi()) {
    const parameters = (operation.parameters ?? []).filter((each) => each.in === 'query');
    if (!code.querystring) continue;
    const required = parameters.filter((each) => each.required);
    const base = {
      ...Object.fromEntries(
        required.map(({ name, schema }) => [name, String(sampleOf(schema, world, name))]),
      ),
      ...(world.samples[operation.operationId] as object | undefined),
    };
    for (const { name, schema } of parameters) {
      const fits = compiled(schema);
      for (const { what, value, text } of probesOf(schema, world, name).flatMap((each) =>
        asText(each, schema),
      )) {
        count++;
        const isTaken = code.querystring.safeParse({ ...base, [name]: text }).success;
        if (fits(value) !== isTaken && !isElsewhere(`${operation.operationId} ?${name}`))
          differing.push(
            `${operation.operationId} ?${name}: ${what}: ${isTaken ? 'only the code' : 'only the description'} takes it`,
          );
      }
    }
  }
  expect(differing).toEqual([]);
  expect(count).toBeGreaterThan(1_000);
});
