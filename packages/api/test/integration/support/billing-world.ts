/** An account that pays by invoice, with helpers for its purchases. */
import {
  finishPurchaseWorkflow,
  lockPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { startApi, type ApiUnderTest } from './api-under-test.ts';

export async function startBilling(changes: Parameters<typeof startApi>[0] = {}) {
  const api = await startApi(changes);
  const base = `/v1/accounts/${api.a.accountId}/billing`;

  const world = {
    api,
    base,
    setAccount: (change: string) =>
      sql`update accounts set ${sql.raw(change)} where account_id = ${api.a.accountId}`.execute(
        api.database,
      ),
    call: (
      method: 'GET' | 'POST',
      path: string,
      options: Parameters<ApiUnderTest['call']>[2] = {},
    ) => api.call(method, `${base}${path}`, { key: api.a.token, ...options }),
    buyPack: (pack: unknown, headers: Record<string, string> = {}) =>
      world.call('POST', '/inbox_previews/invoiced_purchase', { body: { pack }, headers }),
    buyCredits: (body: unknown) => world.call('POST', '/credits/purchase', { body }),
    async countPurchases(): Promise<number> {
      const { rows } = await sql<{ count: number }>`select count(*)::int from runs`.execute(
        api.database,
      );
      return rows[0]!.count;
    },
    endPurchaseWorkflow: (runId: string, status: 'success' | 'declined', receiptId?: string) =>
      api.database.transaction().execute(async (transaction) => {
        const key = { accountId: api.a.accountId, runId };
        await lockPurchaseWorkflow(transaction, key);
        const result = { charged: null, invoiceId: null, ...(receiptId && { receiptId }) };
        await finishPurchaseWorkflow(
          transaction,
          key,
          { status, message: 'ended', result },
          api.clock.nowMs,
        );
      }),
  };
  await world.setAccount(
    "billing_rail = 'invoiced', plan_id = 'premium_month', plan_tier = 'premium'",
  );
  return world;
}

export type Billing = Awaited<ReturnType<typeof startBilling>>;
