/** Deliveries of all webhooks, newest first: filtered by a person, by an event, or by the kind of answer. */
import { useMemo } from 'react';
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { SINCE_UNTIL, withTimes } from '../routing/time-range.ts';
import type { AllPage } from './delivery.ts';
import { askedFor, DELIVERY_QUERY, DeliveryFilters, isFiltered } from './delivery-filters.tsx';
import { DeliveryCells } from './delivery-rows.tsx';
import { useGoOn } from './use-go-on.ts';

const PAGE_COUNT = 50;
const INTERVAL_MS = 5_000;

export const deliveriesRoute: Route = {
  pattern: '/deliveries',
  title: () => 'Deliveries',
  query: DELIVERY_QUERY,
  screen: ({ place: { query } }) => <AllDeliveries query={query} />,
};

function AllDeliveries({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { workspaceId } = useReach();
  // Frozen: a range that moved with the clock would be another list each second.
  const nowMs = useMemo(() => Date.now(), [query['last']]);
  const asked = withTimes(query, nowMs, SINCE_UNTIL);
  const page = useResource(get('/v1/deliveries', { query: askedFor(asked, PAGE_COUNT) }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  const goTo = useGoOn(page.data, JSON.stringify(askedFor({ ...asked, start: undefined }, 0)));
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/webhooks">Webhooks</Link>
        </p>
        <h1>Deliveries of all webhooks</h1>
      </header>
      <div className="filters">
        <DeliveryFilters query={query} nowMs={nowMs} readAtMs={page.readAtMs} />
      </div>
      <Shown resource={page}>
        {({ deliveries, next }) => (
          <>
            {deliveries.length === 0 ? (
              <Empty title={isFiltered(query) ? 'No delivery fits' : 'There is no delivery yet'}>
                <p>
                  {next === ''
                    ? 'A delivery comes with the first event of a type that a webhook selects.'
                    : 'Older ones were not looked through yet: go on by “Older”.'}
                </p>
              </Empty>
            ) : (
              <Table deliveries={deliveries} />
            )}
            <PageButtons start={query['start']} next={next} onStart={goTo} />
          </>
        )}
      </Shown>
    </>
  );
}

function Table({ deliveries }: { readonly deliveries: AllPage['deliveries'] }) {
  return (
    <ListTable
      caption="Deliveries, newest first"
      heads={['Webhook and number', 'Type', 'State', 'Attempts', 'Logged']}
    >
      {deliveries.map((each) => (
        <tr key={`${each.webhook_id} ${each.sequence}`}>
          <th scope="row">
            <Link
              to={`/webhooks/${each.webhook_id}`}
              query={{ delivery: String(each.sequence) }}
              data-row=""
            >
              {each.webhook_id} #{each.sequence}
            </Link>
          </th>
          <DeliveryCells delivery={each} />
        </tr>
      ))}
    </ListTable>
  );
}
