/**
 * Buys a plan for the demo's third account, by card.
 *
 * It does so as the account's owner would: over the API, from the simulated payment provider. So there is an account in
 * which every call of billing can be tried at once.
 *
 * At later starts the work is done: it looks and ends.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';

/** A test card of the payment provider's own, which is never refused. */
const CARD = 'pm_card_visa';
const TIMEOUT_MS = 20_000;

interface Info {
  readonly billing: { readonly subscription: unknown; readonly payment_method: unknown };
}

interface Plans {
  readonly plans: readonly {
    readonly id: string;
    readonly tier: string;
    readonly interval: string;
  }[];
}

/**
 * @param api - its address.
 * @param onNote - called with a failure; the rest of Sluice works without the plan.
 */
export async function subscribeDemo(api: string, onNote: (line: string) => void): Promise<void> {
  const base = `${api}/v1/accounts/${DEMO.paidAccountId}/billing`;
  const call = async (path: string, body?: object): Promise<Response> =>
    fetch(`${base}${path}`, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: {
        authorization: `Bearer ${DEMO.paidAccountToken}`,
        'content-type': 'application/json',
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  const buy = async (path: string, body: object): Promise<void> => {
    const answer = await call(path, body);
    const text = await answer.text();
    // One that outlives its wait goes on by itself.
    if (!answer.ok && !text.includes('"checkout_pending"'))
      onNote(`the demo's account ${DEMO.paidAccountId} could not be given a plan: ${text}`);
  };
  try {
    const answer = await call('/info');
    // The number was somebody's account before there was this demo.
    if (answer.status === 401) return;
    const { billing } = (await answer.json()) as Info;
    if (billing.payment_method === null)
      await buy('/payment_method/default', { payment_method_id: CARD });
    if (billing.subscription !== null) return;
    const { plans } = (await (await call('/plans')).json()) as Plans;
    const monthly = plans.filter(
      ({ tier, interval }) => tier !== 'builder' && interval === 'month',
    );
    const plan = monthly.find(({ tier }) => tier === 'premium') ?? monthly[0];
    if (plan) await buy(`/plans/${plan.id}`, {});
  } catch (error) {
    onNote(
      `the demo's account ${DEMO.paidAccountId} could not be given a plan: ${(error as Error).message}`,
    );
  }
}
