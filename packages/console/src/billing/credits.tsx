/** Every move of credits, newest first, each with the balance after it. */
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { AccountZone, ZoneLead } from './account-zone.tsx';

interface Entry {
  readonly entry_id: number;
  readonly reason: string;
  readonly pool: string;
  readonly from: string;
  readonly to: string;
  readonly amount: number;
  readonly available_after: number;
  readonly created_at: string;
}

const TYPES = ['llm', 'builder', 'inbox_previews'] as const;

export const creditsRoute: Route = {
  pattern: '/billing/credits',
  title: () => 'Credits',
  query: { type: TYPES, start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => (
    <AccountZone>
      <Ledger query={query} />
    </AccountZone>
  ),
};

function Ledger({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const { type = 'llm', start } = query;
  const asked = new URLSearchParams({
    credit_type: type,
    limit: '50',
    ...(start !== undefined && { start }),
  });
  const resource = useResource<{ entries: readonly Entry[]; next: string }>(
    `/v1/accounts/${account.id}/billing/credits/ledger?${asked.toString()}`,
  );
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/billing">Billing</Link>
        </p>
        <h1>Credits</h1>
        <ZoneLead />
      </header>
      <div className="tabs" role="group" aria-label="Type">
        {TYPES.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === type}
            onClick={() => setQuery({ type: each, start: undefined })}
          >
            {each.replaceAll('_', ' ')}
          </button>
        ))}
      </div>
      <Shown resource={resource}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Empty title="No credits have moved yet" />
          ) : (
            <>
              <table className="list">
                <caption className="unseen">Moves of credits, the newest first</caption>
                <thead>
                  <tr>
                    <th scope="col">At</th>
                    <th scope="col">Why</th>
                    <th scope="col">Amount</th>
                    <th scope="col">From</th>
                    <th scope="col">To</th>
                    <th scope="col">Left</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((entry) => (
                    <tr key={entry.entry_id}>
                      <th scope="row">
                        <Time atMs={Date.parse(entry.created_at)} />
                      </th>
                      <td>
                        {entry.reason}, {entry.pool.replaceAll('_', ' ')}
                      </td>
                      <td>{countText(entry.amount)}</td>
                      <td>{entry.from.replaceAll('_', ' ')}</td>
                      <td>{entry.to.replaceAll('_', ' ')}</td>
                      <td>{countText(entry.available_after)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <PageButtons
                start={start}
                next={next}
                onStart={(to) => setQuery({ start: to }, false)}
              />
            </>
          )
        }
      </Shown>
    </>
  );
}
