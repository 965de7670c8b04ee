/** Every move of credits, newest first, each with the balance after it. */
import { useEffect, useState } from 'react';
import { get } from '../client/calls.ts';
import { request } from '../client/request.ts';
import type { QueryOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { useWork } from '../forms/use-work.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { choiceOf } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { AccountZone, ZoneLead } from './account-zone.tsx';
import { type LedgerEntry, ledgerCsv } from './ledger-csv.ts';

/** A minute's calls of a session are bounded. */
const FILE_PAGES_MAX = 50;
const FILE_PAGE_COUNT = 200;

const LEDGER = '/v1/accounts/{account_id}/billing/credits/ledger';
type CreditType = NonNullable<QueryOf<typeof LEDGER>['credit_type']>;
const TYPES = ['llm', 'builder', 'inbox_previews'] as const satisfies readonly CreditType[];

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
  const { start } = query;
  const type = choiceOf(TYPES, query['type']) ?? 'llm';
  const resource = useResource(
    get(LEDGER, {
      path: { account_id: account.id },
      query: { credit_type: type, limit: 50, start },
    }),
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
              <ListTable
                caption="Moves of credits, the newest first"
                heads={['At', 'Why', 'Amount', 'From', 'To', 'Left']}
              >
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
              </ListTable>
              <PageButtons
                start={start}
                next={next}
                onStart={(to) => setQuery({ start: to }, false)}
              />
              <LedgerFile key={type} type={type} />
            </>
          )
        }
      </Shown>
    </>
  );
}

/** All moves of one type as CSV, read page by page when the user asks for them. */
function LedgerFile({ type }: { readonly type: CreditType }) {
  const { account } = useSession();
  const [file, setFile] = useState<{ url: string; count: number; isCut: boolean }>();
  // The browser keeps the bytes of an address until it is revoked.
  useEffect(() => (file ? () => URL.revokeObjectURL(file.url) : undefined), [file]);
  const { isRunning, problem, run } = useWork();
  const make = (): void =>
    void run(async () => {
      const entries: LedgerEntry[] = [];
      let next = '';
      for (let page = 0; page === 0 || (next !== '' && page < FILE_PAGES_MAX); page++) {
        const answer = await request(
          get(LEDGER, {
            path: { account_id: account.id },
            query: { credit_type: type, limit: FILE_PAGE_COUNT, start: next || undefined },
          }),
        );
        entries.push(...answer.entries);
        ({ next } = answer);
      }
      const blob = new Blob([ledgerCsv(entries)], { type: 'text/csv' });
      setFile({ url: URL.createObjectURL(blob), count: entries.length, isCut: next !== '' });
    });
  return (
    <div className="actions">
      <button type="button" disabled={isRunning} onClick={make}>
        Make a CSV of all moves
      </button>
      {file && (
        <a href={file.url} download={`credits-${type}.csv`}>
          Download {file.isCut && 'the latest '}
          {countText(file.count)} moves
        </a>
      )}
      <Refusal problem={problem} />
    </div>
  );
}
