/** Refused or corrected parts of calls, counted by day. */
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Badge } from '../parts/badge.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import { JsonView } from '../parts/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { sampleOf } from '../sentences/code-samples.ts';
import { visibleText } from '../sentences/visible-text.ts';

interface Issue {
  readonly code: string;
  readonly severity: 'error' | 'warning';
  readonly source: string;
  readonly field: string | null;
  readonly message: string;
  readonly sample: string | null;
  readonly day: string;
  readonly count: number;
  readonly last_at: number;
}

const INTERVAL_MS = 5_000;
const TEXT = /^[^]{1,500}$/;
const SEVERITIES = { error: 'not taken', warning: 'taken with a change' } as const;

export const issuesRoute: Route = {
  pattern: '/issues',
  title: () => 'Issues',
  query: {
    severity: Object.keys(SEVERITIES),
    code: TEXT,
    source: TEXT,
    field: TEXT,
    start: /^[\w-]{1,2048}$/,
    open: TEXT,
  },
  screen: ({ place: { query } }) => <Issues query={query} />,
};

function Issues({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const { severity, code, source, field, start, open } = query;
  const asked = new URLSearchParams(
    Object.entries({ limit: '50', severity, code, source, field, start }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );
  const resource = useResource<{ ingestion_issues: readonly Issue[]; next: string }>(
    `/v1/ingestion_issues?${asked.toString()}`,
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const filter = (change: Record<string, string | undefined>): void =>
    setQuery({ ...change, start: undefined, open: undefined });
  return (
    <>
      <header className="title">
        <h1>Issues</h1>
        <p className="lead">
          Calls, and parts of calls, that were refused, left out, or taken with a change.
        </p>
      </header>
      <div className="filters" role="search" aria-label="Filters">
        <label>
          Severity{' '}
          <select
            value={severity ?? ''}
            onChange={(event) => filter({ severity: event.currentTarget.value || undefined })}
          >
            <option value="">all</option>
            {Object.entries(SEVERITIES).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <FilterText label="Code" value={code} onChange={(text) => filter({ code: text })} />
        <FilterText label="Source" value={source} onChange={(text) => filter({ source: text })} />
        <FilterText label="Field" value={field} onChange={(text) => filter({ field: text })} />
      </div>
      <Shown resource={resource}>
        {({ ingestion_issues: issues, next }) =>
          issues.length === 0 ? (
            <Empty
              title={
                (severity ?? code ?? source ?? field) ? 'No issue matches' : 'No issue in 90 days'
              }
            >
              <p>
                <Link to="/live" query={{ outcome: 'refused' }}>
                  Live
                </Link>{' '}
                shows refusals as they happen.
              </p>
            </Empty>
          ) : (
            <>
              <IssueTable
                issues={issues}
                open={open}
                onOpen={(key) => setQuery({ open: key === open ? undefined : key }, false)}
              />
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

/** The call that lists the issue, of every day. */
function curlOf({ code, source, field }: Issue): string {
  const asked = new URLSearchParams({ code, source, ...(field !== null && { field }) });
  return sampleOf('curl', {
    method: 'GET',
    url: `${location.origin}/v1/ingestion_issues?${asked.toString()}`,
    auth: 'bearer',
    variable: 'SLUICE_KEY',
  });
}

const keyOf = ({ day, code, source, field }: Issue): string =>
  [day, code, source, field ?? ''].join(' ');

function IssueTable({
  issues,
  open,
  onOpen,
}: {
  readonly issues: readonly Issue[];
  readonly open: string | undefined;
  readonly onOpen: (key: string) => void;
}) {
  return (
    <table className="list">
      <caption className="unseen">Issues, newest day first</caption>
      <thead>
        <tr>
          <th scope="col">Day</th>
          <th scope="col">Severity</th>
          <th scope="col">Code</th>
          <th scope="col">Source</th>
          <th scope="col">Field</th>
          <th scope="col" className="right">
            Count
          </th>
          <th scope="col">Last</th>
        </tr>
      </thead>
      <tbody>
        {issues.map((issue) => {
          const key = keyOf(issue);
          const isOpen = key === open;
          return [
            <tr key={key} className={isOpen ? 'open' : ''} onClick={() => onOpen(key)}>
              <td className="number">{issue.day}</td>
              <td>
                <Badge state={issue.severity} text={SEVERITIES[issue.severity]} />
              </td>
              <td>
                <button
                  type="button"
                  className="cell"
                  data-row=""
                  aria-expanded={isOpen}
                  onClick={(event) => {
                    event.stopPropagation();
                    onOpen(key);
                  }}
                >
                  {issue.code}
                </button>
              </td>
              <td>
                <code>{visibleText(issue.source)}</code>
              </td>
              <td className="clip">
                <code>{visibleText(issue.field ?? '–')}</code>
              </td>
              <td className="number right">{issue.count}</td>
              <td className="number">
                <Time atMs={issue.last_at * 1000} isWhole isShort />
              </td>
            </tr>,
            isOpen && (
              <tr key={`${key} detail`} className="detail">
                <td colSpan={7}>
                  <p>{visibleText(issue.message)}</p>
                  {issue.sample !== null && (
                    <JsonView value={issue.sample} label="The start of the latest value" />
                  )}
                  <p>
                    <CopyButton text={curlOf(issue)} label="Copy as curl" />
                  </p>
                </td>
              </tr>
            ),
          ];
        })}
      </tbody>
    </table>
  );
}
