/**
 * Examples of billing calls in the API's document.
 *
 * Each works when it is pasted, in the demo's account with a plan.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { subscribeDemo } from '../../src/subscribe-demo.ts';
import {
  startPurchaseServices,
  WAIT,
  type PurchaseServices,
} from './purchases/purchase-services.ts';

const TEST_TIMEOUT_MS = 180_000;
const PAID = { accountId: DEMO.paidAccountId, token: DEMO.paidAccountToken } as const;

interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly examples?: readonly unknown[];
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, Schema> };
}

let services: PurchaseServices;
let document: Document;
const notes: string[] = [];
beforeAll(async () => {
  services = await startPurchaseServices(testRedisUrl());
  await subscribeDemo(services.api.url, (line) => notes.push(line));
  document = (await (await fetch(`${services.api.url}/openapi.json`)).json()) as Document;
}, TEST_TIMEOUT_MS);
afterAll(() => services.close());

const BILLING = '/v1/accounts/{account_id}/billing';

const resolve = (schema: Schema): Schema =>
  schema.$ref === undefined
    ? schema
    : resolve(document.components.schemas[schema.$ref.split('/').at(-1)!]!);
const bodyOf = (operation: Operation | undefined): Schema => {
  const schema = resolve(operation?.requestBody?.content['application/json']?.schema ?? {});
  return schema.examples ? schema : resolve(schema.anyOf?.[0] ?? schema);
};
const call = async (path: string, body?: unknown) => {
  const answer = await fetch(`${services.api.url}${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${PAID.token}`, 'content-type': 'application/json' },
  });
  return { status: answer.status, body: await answer.text() };
};

test('the demo has an account with a plan and a card, once, however often it is started', async () => {
  await subscribeDemo(services.api.url, (line) => notes.push(line));
  expect(notes).toEqual([]);
  const { body } = await services.call(PAID, '/info');
  expect(body).toMatchObject({
    billing: {
      plan: { id: 'premium_month', status: 'active' },
      subscription: { status: 'active' },
      payment_method: { card: { last4: '4242' } },
    },
  });
  expect(services.paid()).toMatchObject([{ amount: 100_000 }]);
  // The other two stay as they are.
  for (const account of [
    { accountId: DEMO.accountId, token: DEMO.accountToken },
    { accountId: DEMO.invoicedAccountId, token: DEMO.invoicedAccountToken },
  ] as const)
    expect((await services.call(account, '/info')).body).toMatchObject({
      billing: { plan: { id: 'premium_month' }, subscription: null, payment_method: null },
    });
});

test('each example is taken', { timeout: TEST_TIMEOUT_MS }, async () => {
  const refused: unknown[] = [];
  let count = 0;
  const posts = Object.keys(document.paths).filter(
    (path) => path.startsWith(BILLING) && document.paths[path]!['post'],
  );
  for (const path of posts) {
    const operation = document.paths[path]!['post']!;
    const examples = bodyOf(operation).examples ?? [];
    const given = Object.fromEntries(
      (operation.parameters ?? []).map(({ name, schema }) => [name, resolve(schema).examples?.[0]]),
    );
    expect({ path, account: given['account_id'] }).toEqual({ path, account: PAID.accountId });
    const url = path.replaceAll(
      /\{(\w+)\}/g,
      (_, name: string) => (given[name] ?? 'job-1') as string,
    );
    if (examples.length === 0) refused.push({ path, why: 'it has no example' });
    for (const example of examples) {
      count += 1;
      // No purchase may be in flight, as for a person who pastes one after another.
      await vi.waitFor(async () => {
        const { body } = await services.call(PAID, '/info');
        expect(body).toMatchObject({ billing: { in_flight: [] } });
      }, WAIT);
      const answer = await call(url, example);
      if (answer.status >= 300) refused.push({ path, example, ...answer });
    }
  }
  expect(refused).toEqual([]);
  expect(count).toBeGreaterThan(9);
});

test('the document has the packs, plans, add-ons and quantities of the catalogue', () => {
  const post = (path: string) => bodyOf(document.paths[`${BILLING}${path}`]!['post']);
  for (const path of ['/inbox_previews/payment_intent', '/inbox_previews/invoiced_purchase'])
    expect(post(path).properties!['pack']!.enum).toEqual([
      'pack_100',
      'pack_500',
      'pack_1000',
      'pack_5000',
    ]);
  const plan = document.paths[`${BILLING}/plans/{plan_id}`]!['post']!.parameters!.find(
    ({ name }) => name === 'plan_id',
  );
  expect(plan!.schema.enum).toEqual([
    'builder',
    'essentials_month',
    'premium_month',
    'premium_year',
  ]);
  const llm = { minimum: 1_000, maximum: 1_000_000, multipleOf: 1_000 };
  const builder = { minimum: 100, maximum: 100_000, multipleOf: 100 };
  const quantityOf = (schema: Schema) => resolve(schema).properties!['quantity'];
  const credits = post('/credits/purchase').properties!;
  expect(quantityOf(credits['llm']!)).toMatchObject(llm);
  expect(quantityOf(credits['builder']!)).toMatchObject(builder);
  expect(quantityOf(post('/ai_credits/payment_intent'))).toMatchObject(llm);
  expect(quantityOf(post('/builder_credits/payment_intent'))).toMatchObject(builder);
  const skus = resolve(post('/addons').properties!['skus']!).properties!['add']!.items!;
  expect(skus.enum).toEqual([
    'price_addon_ip_month',
    'price_addon_ip_year',
    'price_addon_sms_month',
  ]);
});
