/** Refused or corrected parts of calls, counted by day. */
import { useMemo, useState } from 'react';
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { announce } from '../parts/announcer.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import { RangeFilter } from '../forms/range-filter.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { mutedIssues, muteKeyOf, toggleMuted } from '../parts/preferences.ts';
import { choiceOf } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { secondsOf, SINCE_UNTIL, TIMES_QUERY, withTimes } from '../routing/time-range.ts';
import { sampleOf } from '../sentences/code-samples.ts';
import { visibleText } from '../sentences/visible-text.ts';

type Issue = Described<'IngestionIssue'>;

const INTERVAL_MS = 5_000;
const TEXT = /^[^]{1,500}$/;
const SEVERITIES = { error: 'not taken', warning: 'taken with a change' } as const satisfies Record<
  Issue['severity'],
  string
>;

export const issuesRoute: Route = {
  pattern: '/issues',
  title: () => 'Issues',
  query: {
    severity: Object.keys(SEVERITIES),
    code: TEXT,
    source: TEXT,
    field: TEXT,
    ...TIMES_QUERY,
    muted: ['shown'],
    start: /^[\w-]{1,2048}$/,
    open: TEXT,
  },
  screen: ({ place: { query } }) => <Issues query={query} />,
};

function Issues({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const { severity, code, source, field, start, open, muted: shownMuted } = query;
  // Frozen: a range that moved with the clock would be another list each second.
  const nowMs = useMemo(() => Date.now(), [query['last']]);
  const times = withTimes(query, nowMs, SINCE_UNTIL);
  const since = secondsOf(times['since']);
  const until = secondsOf(times['until']);
  const [muted, setMuted] = useState(mutedIssues);
  const resource = useResource(
    get('/v1/ingestion_issues', {
      query: {
        limit: 50,
        severity: choiceOf(Object.keys(SEVERITIES) as Issue['severity'][], severity),
        code,
        source,
        field,
        since,
        until,
        start,
      },
    }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const isMuted = (issue: Issue): boolean => muted.has(muteKeyOf(workspaceId, issue));
  const turn = (issue: Issue): void => {
    announce(isMuted(issue) ? 'Shown again' : 'Muted');
    setMuted(toggleMuted(muteKeyOf(workspaceId, issue)));
    if (isMuted(issue) || shownMuted) return;
    // Its row is gone, and the focus with it.
    setQuery({ open: undefined });
    document.querySelector<HTMLElement>('#screen')?.focus({ preventScroll: true });
  };
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
        <FilterText
          label="Code"
          name="code"
          value={code}
          onChange={(text) => filter({ code: text })}
        />
        <FilterText
          label="Source"
          name="source"
          value={source}
          onChange={(text) => filter({ source: text })}
        />
        <FilterText
          label="Field"
          name="field"
          value={field}
          onChange={(text) => filter({ field: text })}
        />
        <RangeFilter
          verb="Seen"
          query={query}
          nowMs={nowMs}
          readAtMs={resource.readAtMs}
          onChange={filter}
        />
      </div>
      <Shown resource={resource}>
        {({ ingestion_issues: issues, next }) =>
          issues.length === 0 ? (
            <Empty
              title={
                (severity ?? code ?? source ?? field ?? since ?? until)
                  ? 'No issue matches'
                  : 'No issue in 90 days'
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
              <MutedIssues
                count={issues.filter(isMuted).length}
                areShown={shownMuted !== undefined}
                onTurn={(areShown) => setQuery({ muted: areShown ? 'shown' : undefined })}
              />
              <IssueTable
                issues={shownMuted ? issues : issues.filter((issue) => !isMuted(issue))}
                isMuted={isMuted}
                onMute={turn}
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

/** The number of muted issues of the page, and the button that shows them. */
function MutedIssues({
  count,
  areShown,
  onTurn,
}: {
  readonly count: number;
  readonly areShown: boolean;
  readonly onTurn: (areShown: boolean) => void;
}) {
  if (count === 0) return null;
  return (
    <p className="faint">
      {count} of this page {count === 1 ? 'is' : 'are'} muted in this browser.{' '}
      <button type="button" className="small" onClick={() => onTurn(!areShown)}>
        {areShown ? 'Hide muted' : 'Show muted'}
      </button>
    </p>
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

/** The detail has all of it. */
const SAMPLE_LENGTH_MAX = 80;

const startOf = (sample: string): string =>
  sample.length <= SAMPLE_LENGTH_MAX ? sample : `${sample.slice(0, SAMPLE_LENGTH_MAX)}…`;

const keyOf = ({ day, code, source, field }: Issue): string =>
  [day, code, source, field ?? ''].join(' ');

function IssueTable({
  issues,
  isMuted,
  onMute,
  open,
  onOpen,
}: {
  readonly issues: readonly Issue[];
  readonly isMuted: (issue: Issue) => boolean;
  /** Mutes the issue, or shows a muted one again. */
  readonly onMute: (issue: Issue) => void;
  readonly open: string | undefined;
  readonly onOpen: (key: string) => void;
}) {
  return (
    <ListTable
      caption="Issues, newest day first"
      heads={[
        'Day',
        'Severity',
        'Code, message, latest value',
        'Source',
        'Field',
        { text: 'Count', form: 'right' },
        'Last',
      ]}
    >
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
              {isMuted(issue) && <span className="chip">muted</span>}
              <div>{visibleText(issue.message)}</div>
              {issue.sample !== null && (
                <code className="faint clip">{visibleText(startOf(issue.sample))}</code>
              )}
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
                {issue.sample !== null && (
                  <JsonView value={issue.sample} label="The start of the latest value" />
                )}
                <p>
                  <CopyButton text={curlOf(issue)} label="Copy as curl" />{' '}
                  <button type="button" className="small" onClick={() => onMute(issue)}>
                    {isMuted(issue) ? 'Unmute' : 'Mute in this browser'}
                  </button>
                </p>
              </td>
            </tr>
          ),
        ];
      })}
    </ListTable>
  );
}
