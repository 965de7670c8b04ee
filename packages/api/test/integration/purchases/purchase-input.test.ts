import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';
import { checkAgainst } from '../support/documented-answers.ts';

/** Taken out of every body as it is parsed (`body.ts`). */
const DROPPED = ['__proto__', 'constructor'];

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing.api.close());
beforeEach(() =>
  billing.setAccount("billing_rail = 'invoiced', plan_tier = 'premium', plan_status = 'active'"),
);

describe('a refusal before the start of a purchase', () => {
  afterEach(async () => {
    if ((await billing.countPurchases()) > 0) throw new Error('a purchase was started');
  });

  test.each([
    [{}, 'must name exactly one'],
    [{ llm: { quantity: 1_000 }, builder: { quantity: 100 } }, 'must name exactly one'],
    [{ llm: { quantity: 1_001 } }, 'llm.quantity must be a multiple of 1000'],
    [{ llm: { quantity: 1_000, amount: 1 } }, 'llm.amount is not a field'],
    [{ llm: { quantity: 1_000 }, amount: 1 }, 'amount is not a field'],
    [{ llm: { quantity: -1_000 } }, 'llm.quantity must be at least 1000'],
    [{ llm: { quantity: 999 } }, 'llm.quantity must be at least 1000'],
    [{ llm: { quantity: 2_000_000 } }, 'llm.quantity must be a multiple'],
    // The bounds of an integer of JavaScript are no bounds of a field.
    [{ llm: { quantity: 1e18 } }, /^llm\.quantity must be at most \d{7,10}$/],
    [{ llm: { quantity: -1e18 } }, /^llm\.quantity must be at least 1000$/],
    [{ sms: { quantity: 1 } }, 'sms is not a field'],
  ])('credits %j', async (body, message) => {
    const answer = await billing.buyCredits(body);
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().meta.error).toMatch(message);
  });

  test.each([
    [{ pack: 'pack_7' }, 'pack must be one of pack_100'],
    [{ pack: 'pack_100', amount: 1 }, 'amount is not a field'],
    [{ pack: 100 }, 'pack must be a string'],
  ])('pack %j', async (body, message) => {
    const answer = await billing.call('POST', '/inbox_previews/invoiced_purchase', { body });
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().meta.error).toContain(message);
  });

  test.each([
    [{ skus: { add: [], remove: [] } }, 'skus.add'],
    [{ skus: { add: ['a'], remove: ['b'] } }, 'skus.remove'],
    [{ skus: { add: ['a', 'a'] } }, 'skus.add'],
    [{ skus: { add: ['a'], replace: [] } }, 'skus.replace'],
    [{ skus: { add: ['a b'] } }, 'skus.add.0'],
    [{ skus: { add: ['price_addon_ip_month', 'price_nobody_sells'] } }, 'skus.add.1'],
  ])('add-ons %j', async (body, field) => {
    await billing.setAccount("billing_rail = 'card'");
    const answer = await billing.call('POST', '/addons', { body });
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().errors[0].field).toBe(field);
    expect(answer.json().errors[0].source.pointer).toBe(`/${field.replaceAll('.', '/')}`);
  });

  test('I5: a member that a client adds is refused by name, so that no client can change the charge', async () => {
    await billing.setAccount("billing_rail = 'card'");
    const bodies: [string, Record<string, unknown>][] = [
      ['/addons', { skus: { add: ['price_addon_ip_month'] } }],
      ['/plans/premium_month', { quantity: 1 }],
      ['/credits/purchase', { llm: { quantity: 1_000 } }],
      ['/inbox_previews/payment_intent', { pack: 'pack_100' }],
      ['/ai_credits/payment_intent', { quantity: 1_000 }],
      ['/builder_credits/payment_intent', { quantity: 100 }],
      ['/payment_method/default', { payment_method_id: 'pm_card_visa' }],
      ['/downgrade-to-builder', {}],
    ];
    const name = fc.oneof(
      fc.constantFrom('amount', 'price', 'unit_amount', 'discount', 'currency', 'total'),
      fc.string({ minLength: 1, maxLength: 20 }),
    );
    const body = fc.constantFrom(...bodies);
    await fc.assert(
      fc.asyncProperty(body, name, fc.jsonValue(), async ([path, base], key, value) => {
        const known = [...Object.keys(base), 'coupon_code', 'payment_method_id', 'expected_amount'];
        fc.pre(
          !known.includes(key) &&
            !['llm', 'builder', 'quantity', 'reason', 'feedback', ...DROPPED].includes(key),
        );
        const payload = `${JSON.stringify({ ...base }).slice(0, -1)}${Object.keys(base).length > 0 ? ',' : ''}${JSON.stringify(key)}:${JSON.stringify(value)}}`;
        const answer = await billing.call('POST', path, {
          payload,
          headers: { 'content-type': 'application/json' },
        });
        expect([400, 422]).toContain(answer.statusCode);
        expect(await billing.countPurchases()).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  test('the other payment method type', async () => {
    const onCard = { body: { skus: { add: ['price_addon_ip_month'] } } };
    expectProblem(await billing.call('POST', '/addons', onCard), 422, 'rail_not_supported');
    const pack = { body: { pack: 'pack_100' } };
    expectProblem(
      await billing.call('POST', '/inbox_previews/payment_intent', pack),
      422,
      'rail_not_supported',
    );
  });

  test.each(["plan_tier = 'builder'", "plan_status = 'paused'", "plan_status = 'trialing'"])(
    'a pack for an account with %s',
    async (change) => {
      await billing.setAccount(change);
      expectProblem(await billing.buyPack('pack_100'), 403, 'plan_not_eligible');
    },
  );

  test('a token without the right to buy is forbidden', async () => {
    const { accountId } = billing.api.a;
    await insertToken(billing.api.database, accountId, 'sa_sandbox_member', { role: 'member' });
    await insertToken(billing.api.database, accountId, 'sa_sandbox_reader', { isReadOnly: true });
    const pack = { pack: 'pack_100' };
    const path = '/inbox_previews/invoiced_purchase';
    expectProblem(
      await billing.call('POST', path, { body: pack, key: 'sa_sandbox_member' }),
      403,
      'forbidden',
    );
    expectProblem(
      await billing.call('POST', path, { body: pack, key: 'sa_sandbox_reader' }),
      403,
      'read_only',
    );
  });
});

test('I40: an answer that differs from the document fails the suite, in any test', async () => {
  const check = checkAgainst(billing.api.app.swagger());
  const url = `${billing.base}/credits/balance`;
  const answer = await billing.call('GET', '/credits/balance');
  const { headers, statusCode } = answer;
  const altered = (change: object) => ({
    statusCode,
    headers: { 'content-type': String(headers['content-type']) },
    body: JSON.stringify({ ...answer.json(), ...change }),
  });
  expect(() => check('GET', url, altered({}))).not.toThrow();
  expect(() => check('GET', url, altered({ balances: 'many' }))).toThrow('credits/balance 200');
  expect(() => check('GET', url, altered({ as_of: undefined }))).toThrow('credits/balance 200');
  expect(() => check('GET', url, { ...altered({}), statusCode: 201 })).toThrow('not documented');
});

test('I40: deprecated routes mark every answer and name their successor', async () => {
  for (const [method, path] of [
    ['POST', '/ai_credits/invoiced_purchase'],
    ['GET', '/ai_credits/invoiced_purchase_status?run_id=run_none'],
    ['POST', '/ai_credits/payment_intent'],
    ['GET', '/ai_credits/purchase_status?invoice_id=in_none'],
    ['POST', '/builder_credits/payment_intent'],
    ['GET', '/builder_credits/purchase_status?invoice_id=in_none'],
  ] as const) {
    for (const key of [billing.api.a.token, 'nobody']) {
      const answer = await billing.call(method, path, {
        key,
        ...(method === 'POST' && { body: {} }),
      });
      expect(answer.statusCode).toBeGreaterThanOrEqual(400);
      expect(answer.headers['deprecation']).toBe('@1767225600');
      expect(answer.headers['link']).toContain(
        `<${billing.base}/credits/${method === 'POST' ? 'purchase' : 'purchase_status'}>; rel="successor-version"`,
      );
      expect(answer.headers['sunset']).toBeUndefined();
    }
  }
  const bought = await billing.call('POST', '/ai_credits/invoiced_purchase', {
    body: { quantity: 1_000 },
  });
  const asked = await billing.call(
    'GET',
    `/ai_credits/invoiced_purchase_status?run_id=${bought.json().run_id}`,
  );
  for (const answer of [bought, asked]) {
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['deprecation']).toBe('@1767225600');
    expect(answer.headers['link']).toContain('rel="successor-version"');
  }
  const { paths } = billing.api.app.swagger() as {
    paths: Record<string, Record<string, { deprecated?: boolean }>>;
  };
  const deprecated = Object.values(paths).flatMap((path) =>
    Object.values(path).filter((operation) => operation.deprecated),
  );
  expect(deprecated).toHaveLength(6);
});
