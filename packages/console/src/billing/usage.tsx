/** Inbox previews that were used, by day, week or month: bars, and the same numbers in a table. */
import { Bars } from '../charts/bars.tsx';
import { StatisticsChart } from '../charts/statistics-chart.tsx';
import { get } from '../client/calls.ts';
import type { QueryOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Shown } from '../parts/states.tsx';
import { choiceOf } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';

const SUMMARIES = '/v1/accounts/{account_id}/billing/inbox_previews/usage_summaries';
type Granularity = NonNullable<QueryOf<typeof SUMMARIES>['granularity']>;
const GRANULARITIES = ['day', 'week', 'month'] as const satisfies readonly Granularity[];

export const usageRoute: Route = {
  pattern: '/billing/usage',
  title: () => 'Usage',
  query: { by: GRANULARITIES },
  screen: ({ place: { query } }) => <Usage by={choiceOf(GRANULARITIES, query['by']) ?? 'day'} />,
};

function Usage({ by }: { readonly by: Granularity }) {
  const { account, workspaces } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(
    get(SUMMARIES, { path: { account_id: account.id }, query: { granularity: by } }),
  );
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/billing">Billing</Link>
        </p>
        <h1>Inbox previews used</h1>
        <p className="lead">In the zone of the account, {account.timezone}.</p>
      </header>
      <div className="tabs" role="group" aria-label="By">
        {GRANULARITIES.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === by}
            onClick={() => setQuery({ by: each })}
          >
            {each}
          </button>
        ))}
      </div>
      <Shown resource={resource}>
        {({ series, totals }) => (
          <>
            <p className="sentence">{countText(totals.net)} in all.</p>
            <Bars bars={series.map((point) => ({ key: point.bucket_start, value: point.net }))} />
            <ListTable caption="The same in numbers" heads={['From', 'To', 'Used', 'Refunded']}>
              {series.toReversed().map((point) => (
                <tr key={point.bucket_start}>
                  <th scope="row">{point.bucket_start}</th>
                  <td>{point.bucket_end}</td>
                  <td>{countText(point.used)}</td>
                  <td>{countText(point.refunded)}</td>
                </tr>
              ))}
            </ListTable>
          </>
        )}
      </Shown>
      {workspaces.length > 0 && (
        <section aria-labelledby="operations">
          <h2 id="operations">Operations applied</h2>
          <p className="faint">Of the chosen workspace, by days of UTC. They are not charged.</p>
          <StatisticsChart metric="events" what="operations were applied" span="month" />
        </section>
      )}
    </>
  );
}
