/** One purchase: each step with its times, its charge, and the reason for its wait. */
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { moneyText } from '../sentences/money-text.ts';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { AccountZone, ZoneLead } from './account-zone.tsx';

export type Purchase = Described<'Run'>;

export const PURCHASE_KINDS: Readonly<Record<Purchase['kind'], string>> = {
  addons: 'add-ons',
  credits: 'credits',
  inbox_previews: 'inbox previews',
  checkout: 'plan',
};

export const purchaseRoute: Route = {
  pattern: '/billing/purchases/:run',
  title: () => 'Purchase',
  query: {},
  screen: ({ place: { params } }) => (
    <AccountZone>
      <PurchaseView key={params['run']} runId={params['run'] ?? ''} />
    </AccountZone>
  ),
};

function PurchaseView({ runId }: { readonly runId: string }) {
  const { account } = useSession();
  const resource = useResource(
    get('/v1/accounts/{account_id}/billing/runs/{run_id}', {
      path: { account_id: account.id, run_id: runId },
    }),
    { intervalMs: 5_000 },
  );
  return (
    <Shown isScreen resource={resource} lines={5}>
      {(run) => (
        <>
          <header className="title">
            <p className="above">
              <Link to="/billing">Billing</Link>
            </p>
            <div className="row">
              <h1>Purchase of {PURCHASE_KINDS[run.kind]}</h1>
              <Badge state={run.status} />
            </div>
            <ZoneLead />
          </header>
          <section className="card" aria-label="Result of the purchase">
            <p className="sentence">{sentenceOf(run)}</p>
            {run.message !== null && <p>{visibleText(run.message)}</p>}
            {run.status === 'pending' && <PaymentPage runId={runId} />}
            {run.receipt_id !== null && (
              <p>
                <a
                  href={`/settings/receipts/${encodeURIComponent(run.receipt_id)}`}
                  target="_blank"
                  rel="noreferrer"
                >
                  Receipt
                </a>
              </p>
            )}
            <p className="facts">
              <Copyable text={run.run_id} what="the id of the purchase" />
              {run.invoice_id !== null && (
                <Copyable text={run.invoice_id} what="the id of the invoice" />
              )}
            </p>
          </section>
          <section className="stack" aria-labelledby="steps">
            <h2 id="steps">Steps</h2>
            {run.steps.length === 0 ? (
              <p className="faint">It has begun no step.</p>
            ) : (
              <ListTable caption="Steps, in their order" heads={['Begun', 'Step', 'State', 'Took']}>
                {run.steps.map(({ step, attempt, state, started_at: from, ended_at: to }) => (
                  <tr key={`${step} ${attempt}`}>
                    <th scope="row">
                      <Time atMs={Date.parse(from)} />
                    </th>
                    <td>
                      {step.replaceAll('_', ' ')}
                      {attempt > 1 && `, attempt ${attempt}`}
                    </td>
                    <td>{state === 'intent' ? 'begun' : state}</td>
                    <td>{to === null ? '–' : durationText(Date.parse(to) - Date.parse(from))}</td>
                  </tr>
                ))}
              </ListTable>
            )}
          </section>
        </>
      )}
    </Shown>
  );
}

/** Link to the page on which the customer pays; empty if a card on file is charged. */
function PaymentPage({ runId }: { readonly runId: string }) {
  const { account, capabilities } = useSession();
  const { data } = useResource(
    capabilities.includes('billing.buy')
      ? get('/v1/accounts/{account_id}/billing/runs/{run_id}/payment_page', {
          path: { account_id: account.id, run_id: runId },
        })
      : undefined,
    { intervalMs: 5_000 },
  );
  if (data?.url == null) return null;
  return (
    <p>
      <a className="button main" href={data.url} target="_blank" rel="noopener noreferrer">
        Pay at the payment provider’s page
      </a>
    </p>
  );
}

function sentenceOf({ status, charged, due }: Purchase): string {
  switch (status) {
    case 'pending':
      return due ? `It waits for a bank to pay ${moneyText(due)}.` : 'It waits for its payment.';
    case 'success':
      return charged ? `${moneyText(charged)} were charged.` : 'There was no charge.';
    case 'declined':
      return 'The card was declined, and was not charged.';
    case 'refused':
      return 'It was refused, and there was no charge.';
    case 'failed':
      return 'It failed, and there was no charge.';
  }
}
