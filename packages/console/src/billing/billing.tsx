/** The account's next charges, with their parts: plan, meters, credits, purchases. */
import { useState } from 'react';
import { get } from '../client/calls.ts';
import type { AnswerOf, Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { countText, type Money, moneyText, nextInvoiceText } from '../sentences/money-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { AccountZone, ZoneLead } from './account-zone.tsx';
import { Buying } from './buying.tsx';
import { PURCHASE_KINDS } from './purchase.tsx';

type BillingInfo = AnswerOf<'get', '/v1/accounts/{account_id}/billing/info'>['billing'];
type UsageProfile = AnswerOf<'get', '/v1/accounts/{account_id}/billing/usage_profile'>['profile'];
type Balance = Described<'CreditBalance'>;

export const billingRoute: Route = {
  pattern: '/billing',
  title: () => 'Billing',
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => (
    <AccountZone>
      <Billing start={query['start']} />
    </AccountZone>
  ),
};

function Billing({ start }: { readonly start: string | undefined }) {
  const { account } = useSession();
  const path = { account_id: account.id };
  const info = useResource(get('/v1/accounts/{account_id}/billing/info', { path }));
  const usage = useResource(get('/v1/accounts/{account_id}/billing/usage_profile', { path }));
  const [boughtCount, setBoughtCount] = useState(0);
  const credits = useResource(get('/v1/accounts/{account_id}/billing/credits/balance', { path }));
  return (
    <>
      <header className="title">
        <h1>Billing</h1>
        <ZoneLead />
      </header>
      <section className="card" aria-labelledby="plan">
        <h2 id="plan">Plan and next invoice</h2>
        <Shown resource={info} lines={3}>
          {({ billing }) => (
            <Plan billing={billing} overage={usage.data?.profile.estimated_total} />
          )}
        </Shown>
      </section>
      <section className="stack" aria-labelledby="meters">
        <h2 id="meters">Usage of the plan</h2>
        <Shown resource={usage} lines={4}>
          {({ profile }) => <Meters profile={profile} />}
        </Shown>
        <p>
          <Link to="/billing/usage">Inbox previews by day</Link>
        </p>
      </section>
      <section className="stack" aria-labelledby="credits">
        <h2 id="credits">Credits</h2>
        <Shown resource={credits} lines={3}>
          {({ balances }) => <Credits balances={balances} />}
        </Shown>
      </section>
      {info.data && (
        <Buying
          rail={info.data.billing.rail}
          onBought={() => {
            void info.reload();
            void credits.reload();
            setBoughtCount((count) => count + 1);
          }}
        />
      )}
      <Purchases key={boughtCount} start={start} />
    </>
  );
}

/** The number, then its parts. */
function Plan({
  billing,
  overage,
}: {
  readonly billing: BillingInfo;
  readonly overage: Money | undefined;
}) {
  const { plan, next_invoice: next, addons, balance_due: due } = billing;
  return (
    <>
      <p className="sentence">
        {visibleText(plan.name)}
        {plan.amount !== null && ` at ${moneyText(plan.amount)} a ${plan.interval ?? 'month'}`}
        {plan.status !== 'active' && `, ${plan.status}`}
        {addons.map(({ sku, name, quantity }) => (
          <span key={sku}>
            {' '}
            + {quantity} {visibleText(name)}
          </span>
        ))}
        .
      </p>
      <p>
        {nextInvoiceText(next, overage)}
        {due.amount > 0 && ` ${moneyText(due)} are due now.`}
      </p>
      <p className="faint">
        {billing.rail === 'card'
          ? 'Purchases are paid by an invoice that the customer pays.'
          : 'Purchases charge the card on file.'}
      </p>
    </>
  );
}

function Meters({ profile }: { readonly profile: UsageProfile }) {
  const { start, end } = profile.billing_period;
  return (
    <table className="list">
      <caption>
        From <Time atMs={Date.parse(start)} isWhole /> to <Time atMs={Date.parse(end)} isWhole />
      </caption>
      <thead>
        <tr>
          <th scope="col">Meter</th>
          <th scope="col">Used</th>
          <th scope="col">Included</th>
          <th scope="col">Beyond</th>
        </tr>
      </thead>
      <tbody>
        {profile.meters.map(({ meter, used, included, overage }) => (
          <tr key={meter}>
            <th scope="row">{meter.replaceAll('_', ' ')}</th>
            <td>
              {countText(used)}{' '}
              <meter
                min={0}
                max={Math.max(1, included, used)}
                value={used}
                aria-label={`${meter.replaceAll('_', ' ')} used`}
              />
            </td>
            <td>{countText(included)}</td>
            <td>{countText(overage)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Credits({ balances }: { readonly balances: readonly Balance[] }) {
  return (
    <ListTable caption="Credits by type and pool" heads={['Type', 'Left', 'Pools']}>
      {balances.map(({ credit_type: type, total_available: left, pools }) => (
        <tr key={type}>
          <th scope="row">
            <Link to="/billing/credits" query={{ type }} data-row="">
              {type}
            </Link>
          </th>
          <td>{countText(left)}</td>
          <td>
            {pools
              .filter(({ remaining }) => remaining > 0)
              .map((pool) => (
                <div key={pool.pool}>
                  {countText(pool.remaining)} {pool.pool.replaceAll('_', ' ')}
                  {pool.next_expiry !== null && (
                    <>
                      , {countText(pool.next_expiry.amount)} till{' '}
                      <Time atMs={Date.parse(pool.next_expiry.expires_at)} isWhole />
                    </>
                  )}
                </div>
              ))}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function Purchases({ start }: { readonly start: string | undefined }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(
    get('/v1/accounts/{account_id}/billing/runs', {
      path: { account_id: account.id },
      query: { limit: 20, start },
    }),
    { intervalMs: 10_000 },
  );
  return (
    <section className="stack" aria-labelledby="purchases">
      <h2 id="purchases">Purchases</h2>
      <Shown resource={resource} lines={3}>
        {({ runs, next }) =>
          runs.length === 0 ? (
            <p className="faint">There is no purchase yet.</p>
          ) : (
            <>
              <ListTable
                caption="Purchases, the newest first"
                heads={['Asked for', 'What', 'State', 'Charged']}
              >
                {runs.map((run) => (
                  <tr key={run.run_id}>
                    <th scope="row">
                      <Time atMs={Date.parse(run.created_at)} isWhole />
                    </th>
                    <td>
                      <Link to={`/billing/purchases/${run.run_id}`} data-row="">
                        {PURCHASE_KINDS[run.kind] ?? run.kind}
                      </Link>
                    </td>
                    <td>
                      <Badge state={run.status} />
                    </td>
                    <td>{run.charged ? moneyText(run.charged) : '–'}</td>
                  </tr>
                ))}
              </ListTable>
              <PageButtons
                start={start}
                next={next}
                onStart={(to) => setQuery({ start: to }, false)}
              />
            </>
          )
        }
      </Shown>
    </section>
  );
}
