import { finishRun, lockRun } from '@sluice/database/runs';
import { Stripe } from 'stripe';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import { insertToken, startApi, VENDOR_EVENT_SECRET, type ApiUnderTest } from './api-under-test.ts';

let api: ApiUnderTest;
let base: string;
beforeEach(async () => {
  api = await startApi();
  base = `/v1/accounts/${api.a.accountId}/billing`;
  await setAccount("billing_rail = 'invoiced', plan_id = 'premium_month', plan_tier = 'premium'");
});
afterEach(() => api.close());

const setAccount = (change: string) =>
  sql`update accounts set ${sql.raw(change)} where account_id = ${api.a.accountId}`.execute(
    api.database,
  );
const call = (
  method: 'GET' | 'POST',
  path: string,
  options: Parameters<ApiUnderTest['call']>[2] = {},
) => api.call(method, `${base}${path}`, { key: api.a.token, ...options });
const buyPack = (pack: unknown) =>
  call('POST', '/inbox_previews/invoiced_purchase', { body: { pack } });
const buyCredits = (body: unknown) => call('POST', '/credits/purchase', { body });

const countRuns = async () => {
  const { rows } = await sql<{ count: number }>`select count(*)::int from runs`.execute(
    api.database,
  );
  return rows[0]!.count;
};
const endRun = (runId: string, status: 'success' | 'declined') =>
  api.database.transaction().execute(async (transaction) => {
    const key = { accountId: api.a.accountId, runId };
    await lockRun(transaction, key);
    const result = { charged: null, invoiceId: null };
    await finishRun(transaction, key, { status, message: 'ended', result }, api.clock.nowMs);
  });

describe('one purchase in flight', () => {
  test('200 starts at once, alternating two packs: one is created, its like joins, the rest get 409', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => buyPack(index % 2 ? 'pack_100' : 'pack_500')),
    );
    const joined = answers.filter((answer) => answer.statusCode === 200);
    const refused = answers.filter((answer) => answer.statusCode === 409);
    expect([joined.length, refused.length]).toEqual([100, 100]);
    expect(new Set(joined.map((answer) => answer.json().run_id)).size).toBe(1);
    expect(new Set(joined.map((answer) => answer.json().pack)).size).toBe(1);
    for (const answer of refused.slice(0, 3)) {
      expectProblem(answer, 409, 'purchase_in_flight');
      expect(answer.json().meta.run_id).toBe(joined[0]!.json().run_id);
    }
    expect(await countRuns()).toBe(1);
    expect(api.wokenRuns).toHaveLength(1);
    const { rows } = await sql<{ count: number }>`
      select count(*)::int from audit_logs where object_type = 'purchase'`.execute(api.database);
    expect(rows[0]!.count).toBe(1);
  });

  test('another kind of purchase on the rail, old or new way, is another purchase', async () => {
    const pack = await buyPack('pack_100');
    expectProblem(await buyCredits({ llm: { quantity: 1_000 } }), 409, 'purchase_in_flight');
    await endRun(pack.json().run_id, 'success');
    const credits = await buyCredits({ llm: { quantity: 1_000 } });
    expect(credits.json()).toMatchObject({ rail: 'invoiced', status: 'pending', payment: null });
    const old = await call('POST', '/ai_credits/invoiced_purchase', { body: { quantity: 1_000 } });
    expect(old.json()).toEqual({ run_id: credits.json().run_id, status: 'pending' });
    expectProblem(
      await call('POST', '/ai_credits/invoiced_purchase', { body: { quantity: 2_000 } }),
      409,
      'purchase_in_flight',
    );
    expectProblem(await buyPack('pack_100'), 409, 'purchase_in_flight');
  });

  test('after its end the same call is a new purchase, and other accounts never notice', async () => {
    const first = (await buyPack('pack_100')).json().run_id;
    await endRun(first, 'declined');
    expect((await buyPack('pack_100')).json().run_id).not.toBe(first);
    await sql`update accounts set billing_rail = 'invoiced', plan_tier = 'premium'
               where account_id = ${api.b.accountId}`.execute(api.database);
    const other = await api.call(
      'POST',
      `/v1/accounts/${api.b.accountId}/billing/inbox_previews/invoiced_purchase`,
      { key: api.b.token, body: { pack: 'pack_500' } },
    );
    expect(other.statusCode).toBe(200);
  });

  test('add-ons have a lane of their own, in which the order of prices says nothing', async () => {
    await setAccount("billing_rail = 'card'");
    const add = (...skus: string[]) => call('POST', '/addons', { body: { skus: { add: skus } } });
    const first = await add('price_addon_ip_month', 'price_addon_sms_month');
    expect(first.json()).toEqual({ run_id: expect.any(String), status: 'pending' });
    expect(Number(first.headers['retry-after'])).toBe(1);
    expect((await add('price_addon_sms_month', 'price_addon_ip_month')).json()).toEqual(
      first.json(),
    );
    expectProblem(await add('price_addon_sms_month'), 409, 'purchase_in_flight');
    const status = await call('GET', `/addons/status/${first.json().run_id}`);
    expect(status.json()).toMatchObject({ status: 'pending', items: [], charged: null });
  });
});

describe('the state of a purchase', () => {
  test('is told by every handle of it until it ends, and then for ever', async () => {
    const bought = (await buyCredits({ llm: { quantity: 1_000 } })).json();
    const status = () => call('GET', `/credits/purchase_status?purchase_id=${bought.purchase_id}`);
    const pending = await status();
    expect(pending.json()).toMatchObject({ status: 'pending', state: 'pending', balance: null });
    expect(pending.headers['retry-after']).toBeDefined();
    await endRun(bought.run_id, 'success');
    const ended = await status();
    expect(ended.json()).toMatchObject({
      status: 'success',
      state: 'succeeded',
      granted_at: expect.any(String),
      balance: { credit_type: 'llm' },
    });
    expect(ended.headers['retry-after']).toBeUndefined();
    await endRun(bought.run_id, 'declined');
    expect((await status()).json()).toEqual({
      ...ended.json(),
    });
    const old = await call('GET', `/ai_credits/invoiced_purchase_status?run_id=${bought.run_id}`);
    expect(old.json()).toMatchObject({ run_id: bought.run_id, status: 'success' });
    const run = await call('GET', `/runs/${bought.run_id}`);
    expect(run.json()).toMatchObject({ status: 'success', kind: 'credits', steps: [] });
    expect((await call('GET', '/runs')).json().runs).toHaveLength(1);
  });

  test('is nobody else’s, not even with the handle, nor of another kind', async () => {
    const bought = (await buyCredits({ builder: { quantity: 100 } })).json();
    const other = `/v1/accounts/${api.b.accountId}/billing`;
    const asB = { key: api.b.token };
    for (const path of [
      `/credits/purchase_status?purchase_id=${bought.purchase_id}`,
      `/runs/${bought.run_id}`,
      `/addons/status/${bought.run_id}`,
      `/inbox_previews/invoiced_purchase_status?run_id=${bought.run_id}`,
    ])
      expectProblem(await api.call('GET', `${other}${path}`, asB), 404, 'not_found');
    // The right account, the wrong kind: AI credits were not what was bought.
    for (const path of [
      `/addons/status/${bought.run_id}`,
      `/inbox_previews/invoiced_purchase_status?run_id=${bought.run_id}`,
      `/ai_credits/invoiced_purchase_status?run_id=${bought.run_id}`,
    ])
      expectProblem(await call('GET', path), 404, 'not_found');
    const forged = `${bought.purchase_id.slice(0, -3)}AAA`;
    expectProblem(
      await call('GET', `/credits/purchase_status?purchase_id=${forged}`),
      404,
      'not_found',
    );
  });

  test('a long poll ends with the run, and not before', async () => {
    const { run_id: runId } = (await buyPack('pack_100')).json();
    const waiting = call('GET', `/runs/${runId}?wait=20`);
    const first = await Promise.race([
      waiting,
      new Promise((done) => setTimeout(done, 300, 'waits')),
    ]);
    expect(first).toBe('waits');
    await endRun(runId, 'success');
    expect((await waiting).json()).toMatchObject({ status: 'success' });
  });

  test('polling changes nothing', async () => {
    const { run_id: runId } = (await buyPack('pack_100')).json();
    const rows = () =>
      sql<{ rows: string }>`
        select (select jsonb_agg(r) from runs r)::text || (select count(*) from run_steps)::text as rows`.execute(
        api.database,
      );
    const before = (await rows()).rows;
    await Promise.all(
      Array.from({ length: 200 }, () =>
        call('GET', `/inbox_previews/invoiced_purchase_status?run_id=${runId}`),
      ),
    );
    expect((await rows()).rows).toEqual(before);
    expect(api.wokenRuns).toHaveLength(1);
  });
});

describe('what is refused before anything is started', () => {
  afterEach(async () => {
    if ((await countRuns()) > 0) throw new Error('a purchase was started');
  });

  test.each([
    [{}, 'must name exactly one'],
    [{ llm: { quantity: 1_000 }, builder: { quantity: 100 } }, 'must name exactly one'],
    [{ llm: { quantity: 1_001 } }, 'llm.quantity must be a multiple of 1000'],
    [{ llm: { quantity: 1_000, amount: 1 } }, 'llm.amount is not a field'],
    [{ llm: { quantity: 1_000 }, amount: 1 }, 'amount is not a field'],
    [{ llm: { quantity: -1_000 } }, 'llm.quantity must be at least 1'],
    [{ llm: { quantity: 2_000_000 } }, 'llm.quantity must be a multiple'],
    [{ sms: { quantity: 1 } }, 'sms is not a field'],
  ])('credits %j', async (body, message) => {
    const answer = await buyCredits(body);
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().meta.error).toContain(message);
  });

  test.each([
    [{ pack: 'pack_7' }, 'pack must be one of pack_100'],
    [{ pack: 'pack_100', amount: 1 }, 'amount is not a field'],
    [{ pack: 100 }, 'pack must be a string'],
  ])('pack %j', async (body, message) => {
    const answer = await call('POST', '/inbox_previews/invoiced_purchase', { body });
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().meta.error).toContain(message);
  });

  test.each([
    [{ skus: { add: [], remove: [] } }, 'skus.add'],
    [{ skus: { add: ['a'], remove: ['b'] } }, 'skus.remove'],
    [{ skus: { add: ['a', 'a'] } }, 'skus.add'],
    [{ skus: { add: ['a'], replace: [] } }, 'skus.replace'],
    [{ skus: { add: ['a b'] } }, 'skus.add.0'],
  ])('add-ons %j', async (body, field) => {
    await setAccount("billing_rail = 'card'");
    const answer = await call('POST', '/addons', { body });
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().errors[0].field).toBe(field);
    expect(answer.json().errors[0].source.pointer).toBe(`/${field.replaceAll('.', '/')}`);
  });

  test('the other rail', async () => {
    const onCard = { body: { skus: { add: ['price_addon_ip_month'] } } };
    expectProblem(await call('POST', '/addons', onCard), 422, 'rail_not_supported');
    const pack = { body: { pack: 'pack_100' } };
    expectProblem(
      await call('POST', '/inbox_previews/payment_intent', pack),
      422,
      'rail_not_supported',
    );
    await setAccount("billing_rail = 'card'");
    expectProblem(
      await call('POST', '/inbox_previews/invoiced_purchase', pack),
      422,
      'rail_not_supported',
    );
  });

  test.each(["plan_tier = 'builder'", "plan_status = 'paused'", "plan_status = 'trialing'"])(
    'a pack for an account with %s',
    async (change) => {
      await setAccount(change);
      expectProblem(await buyPack('pack_100'), 403, 'plan_not_eligible');
    },
  );

  test('who may not buy', async () => {
    const { accountId } = api.a;
    await insertToken(api.database, accountId, 'sa_sandbox_member', { role: 'member' });
    await insertToken(api.database, accountId, 'sa_sandbox_reader', { isReadOnly: true });
    const pack = { pack: 'pack_100' };
    const path = '/inbox_previews/invoiced_purchase';
    expectProblem(
      await call('POST', path, { body: pack, key: 'sa_sandbox_member' }),
      403,
      'forbidden',
    );
    expectProblem(
      await call('POST', path, { body: pack, key: 'sa_sandbox_reader' }),
      403,
      'read_only',
    );
  });
});

test('the deprecated ways say so on every answer, and name what has replaced them', async () => {
  for (const [method, path] of [
    ['POST', '/ai_credits/invoiced_purchase'],
    ['GET', '/ai_credits/invoiced_purchase_status?run_id=run_none'],
    ['POST', '/ai_credits/payment_intent'],
    ['GET', '/ai_credits/purchase_status?invoice_id=in_none'],
    ['POST', '/builder_credits/payment_intent'],
    ['GET', '/builder_credits/purchase_status?invoice_id=in_none'],
  ] as const) {
    for (const key of [api.a.token, 'nobody']) {
      const answer = await call(method, path, { key, ...(method === 'POST' && { body: {} }) });
      expect(answer.statusCode).toBeGreaterThanOrEqual(400);
      expect(answer.headers['deprecation']).toBe('@1767225600');
      expect(answer.headers['link']).toContain(
        `<${base}/credits/${method === 'POST' ? 'purchase' : 'purchase_status'}>; rel="successor-version"`,
      );
      expect(answer.headers['sunset']).toBeUndefined();
    }
  }
  const { paths } = api.app.swagger() as {
    paths: Record<string, Record<string, { deprecated?: boolean }>>;
  };
  const deprecated = Object.values(paths).flatMap((path) =>
    Object.values(path).filter((operation) => operation.deprecated),
  );
  expect(deprecated).toHaveLength(6);
});

describe('events of the vendor', () => {
  const stripe = new Stripe('sk_test');
  const payload = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'invoice.paid',
    data: { object: { id: 'in_1', object: 'invoice' } },
  });
  const nowSeconds = () => Math.floor(api.clock.nowMs / 1_000);
  const sign = (text: string, secret = VENDOR_EVENT_SECRET, timestamp = nowSeconds()) =>
    stripe.webhooks.generateTestHeaderString({ payload: text, secret, timestamp });
  const send = (text: string, signature: string | undefined) =>
    api.app.inject({
      method: 'POST',
      url: '/v1/vendor_events',
      headers: {
        'content-type': 'application/json',
        ...(signature !== undefined && { 'stripe-signature': signature }),
      },
      payload: text,
    });
  const kept = async () => {
    const { rows } = await sql<{ id: string }>`select event_id as id from vendor_events`.execute(
      api.database,
    );
    return rows.map((row) => row.id);
  };

  test('with the vendor’s own signature are kept once', async () => {
    for (let time = 0; time < 3; time++)
      expect((await send(payload, sign(payload))).statusCode).toBe(200);
    expect(await kept()).toEqual(['evt_1']);
  });

  test.each([
    ['no signature', () => undefined],
    ['junk', () => 'junk'],
    ['another secret', () => sign(payload, 'whsec_other')],
    ['a signature of eleven minutes ago', () => sign(payload, undefined, nowSeconds() - 660)],
    ['one altered byte', () => sign(payload.replace('in_1', 'in_2'))],
  ])('with %s are refused, and nothing is stored', async (_what, signature) => {
    expectProblem(await send(payload, signature()), 400, 'invalid_signature');
    expect(await kept()).toEqual([]);
  });

  test('of types that we have no use for are answered 200, and change nothing', async () => {
    const other = payload.replace('invoice.paid', 'price.created');
    expect((await send(other, sign(other))).statusCode).toBe(200);
    expect(await kept()).toEqual([]);
  });
});

test('the ledger is paged both here and to its end, and a place in one is no place in another', async () => {
  const { accountId } = api.a;
  const { grantCredits } = await import('@sluice/database/credits');
  await api.database.transaction().execute(async (transaction) => {
    for (let n = 1; n <= 5; n++)
      await grantCredits(
        transaction,
        { accountId, kind: 'llm' },
        { pool: 'goodwill', amount: n, expiresAtMs: null, key: `goodwill:${n}` },
        api.clock.nowMs,
      );
  });
  const first = (await call('GET', '/credits/ledger?limit=3')).json();
  expect(first.entries.map((entry: { amount: number }) => entry.amount)).toEqual([5, 4, 3]);
  const rest = (await call('GET', `/credits/ledger?limit=3&start=${first.next}`)).json();
  expect(rest.entries.map((entry: { amount: number }) => entry.amount)).toEqual([2, 1]);
  expect(rest.next).toBe('');
  const foreign = await call('GET', `/credits/ledger?credit_type=builder&start=${first.next}`);
  expectProblem(foreign, 400, 'invalid_request');
  expect((await call('GET', '/credits/balance/llm')).json()).toMatchObject({
    total_available: 15,
    pools: [{ granted: 0 }, { pool: 'goodwill', granted: 15, used: 0, remaining: 15 }, {}],
  });
  expect((await call('GET', '/credits/balance')).json().balances).toHaveLength(2);
  expectProblem(await call('GET', '/credits/balance/sms'), 404, 'not_found');
});

test('a pending purchase keeps its price when the catalogue changes', async () => {
  const { run_id: runId } = (await buyPack('pack_100')).json();
  const { rows } = await sql<{ content: { purchase: object } }>`
    select content from runs where run_id = ${runId}`.execute(api.database);
  expect(rows[0]!.content.purchase).toMatchObject({
    price: { amount: 2_000, currency: 'usd' },
    catalogueVersion: 1,
  });
});
