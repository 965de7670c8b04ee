/** The workspace at a glance: incoming calls, refusals, backlogs, latest changes. Each number leads to its list. */
import type { ReactNode } from 'react';
import { StatisticsChart } from '../charts/statistics-chart.tsx';
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { LatestChanges } from '../parts/latest-changes.tsx';
import { mutedIssues, muteKeyOf } from '../parts/preferences.ts';
import { Failure, Shown } from '../parts/states.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { useTail, WAITS_FOR_TAB } from '../tail/use-tail.ts';

const INTERVAL_MS = 5_000;
const FLEET_INTERVAL_MS = 10_000;
const DAY_MS = 86_400_000;
const LISTED_COUNT = 5;
/** The API has a balance of each. */
const CREDIT_TYPES = ['llm', 'builder'] as const;

export const overviewRoute: Route = {
  pattern: '/',
  title: () => 'Overview',
  query: {},
  screen: () => <Overview />,
};

function Overview() {
  const { capabilities } = useSession();
  return (
    <>
      <header className="title">
        <h1>Overview</h1>
        <p className="lead">
          New here? <Link to="/start">Send your first event</Link>
        </p>
      </header>
      <ul className="tiles" aria-label="Now">
        <Calls />
        <Webhooks />
        <CreditTiles />
        {capabilities.includes('fleet.read') && <UnknownKeyTile />}
      </ul>
      <section aria-labelledby="over-time">
        <h2 id="over-time">Last 24 hours</h2>
        <div className="charts">
          <StatisticsChart metric="events" what="operations were applied" span="day" />
          <StatisticsChart metric="refused" what="were refused" span="day" tone="bad" />
          <StatisticsChart metric="delivered" what="attempts to deliver succeeded" span="day" />
          <StatisticsChart
            metric="failed"
            what="attempts to deliver failed"
            span="day"
            tone="bad"
          />
        </div>
      </section>
      <LatestIssues />
      {capabilities.includes('account.manage') && <LatestChanges title="Latest changes" />}
    </>
  );
}

/** No link while its target is not known: a click must not lead to another place than the later content. */
function Tile({
  to,
  query,
  value,
  children,
}: {
  readonly to: string | undefined;
  readonly query?: Readonly<Record<string, string>>;
  readonly value: string;
  readonly children: ReactNode;
}) {
  const text = (
    <>
      <strong>{value}</strong> <span>{children}</span>
    </>
  );
  return (
    <li>
      {to === undefined ? (
        <a>{text}</a>
      ) : (
        <Link to={to} {...(query && { query })} data-row="">
          {text}
        </Link>
      )}
    </li>
  );
}

/** Counted by the live tail while the page is open. The counts are not stored. */
function Calls() {
  const nowMs = useNow();
  const { lastMinute, isOpen, isWaiting, failure } = useTail({ isPaused: false });
  if (failure)
    return (
      <li>
        <Failure failure={failure} />
      </li>
    );
  if (isWaiting)
    return (
      <li>
        <p className="faint">{WAITS_FOR_TAB}</p>
      </li>
    );
  const { callCount, refusedPercent, spanMs } = lastMinute(nowMs);
  return (
    <>
      <Tile to="/live" value={isOpen ? countText(callCount) : '…'}>
        calls in the last {durationText(Math.max(1_000, spanMs))}
      </Tile>
      <Tile
        to="/live"
        query={{ outcome: 'refused' }}
        value={isOpen ? `${refusedPercent.toFixed(1)} %` : '…'}
      >
        of them refused
      </Tile>
    </>
  );
}

function Webhooks() {
  const { workspaceId } = useSession();
  const nowMs = useNow();
  const { data } = useResource(get('/v1/reporting_webhooks', { query: { include: 'state' } }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  const webhooks = data?.reporting_webhooks;
  const failing = webhooks?.filter(({ state }) => state?.state === 'failing');
  const [oldest] = (failing ?? [])
    .flatMap(({ id, name, state }) => {
      const at = state?.head?.first_attempt_at;
      return at == null ? [] : [{ id, name, atMs: at * 1000 }];
    })
    .toSorted((one, other) => one.atMs - other.atMs);
  return (
    <>
      <Tile to="/webhooks" value={failing ? countText(failing.length) : '…'}>
        of {webhooks ? countText(webhooks.length) : '…'} webhooks failing
      </Tile>
      <Tile
        to={webhooks && (oldest ? `/webhooks/${oldest.id}` : '/webhooks')}
        value={webhooks === undefined ? '…' : oldest ? durationText(nowMs - oldest.atMs) : 'none'}
      >
        oldest delivery that fails{oldest && `, to ${visibleText(oldest.name)}`}
      </Tile>
    </>
  );
}

function CreditTiles() {
  const { account } = useSession();
  const { data, failure } = useResource(
    get('/v1/accounts/{account_id}/billing/credits/balance', {
      path: { account_id: account.id },
    }),
  );
  if (!data && failure) return null;
  const left = new Map(data?.balances.map((each) => [each.credit_type, each.total_available]));
  return CREDIT_TYPES.map((type) => (
    <Tile
      key={type}
      to="/billing/credits"
      query={{ type }}
      value={data ? countText(left.get(type) ?? 0) : '…'}
    >
      {type.replaceAll('_', ' ')} credits left
    </Tile>
  ));
}

/** An unknown key belongs to no workspace. Only sessions of the operator may read the number. */
function UnknownKeyTile() {
  const nowMs = useNow();
  const { data } = useResource(get('/v1/fleet'), { intervalMs: FLEET_INTERVAL_MS });
  const unknown = data?.unknown_keys;
  // The calls are counted by day, so the count may have older ones too.
  const ageMs = unknown?.first_at == null ? 0 : nowMs - Date.parse(unknown.first_at);
  return (
    <Tile to="/fleet" value={unknown ? countText(unknown.count) : '…'}>
      {unknown?.count === 1 ? 'call' : 'calls'} with an unknown key in the last{' '}
      {durationText(Math.max(DAY_MS, ageMs))}
    </Tile>
  );
}

type Issue = Described<'IngestionIssue'>;

function LatestIssues() {
  const { workspaceId } = useSession();
  const resource = useResource(get('/v1/ingestion_issues', { query: { limit: LISTED_COUNT } }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  const muted = mutedIssues();
  const isShown = (issue: Issue): boolean => !muted.has(muteKeyOf(workspaceId, issue));
  return (
    <section aria-labelledby="latest-issues">
      <h2 id="latest-issues">Latest issues</h2>
      <Shown resource={resource} lines={LISTED_COUNT}>
        {({ ingestion_issues: issues }) =>
          !issues.some(isShown) ? (
            <p className="faint">
              {issues.length === 0
                ? 'No call was refused or corrected.'
                : 'The latest issues are muted.'}
            </p>
          ) : (
            <ul className="plain-list">
              {issues.filter(isShown).map((issue) => (
                <li key={`${issue.code} ${issue.source} ${issue.field}`}>
                  <Link to="/issues" query={{ code: issue.code, source: issue.source }} data-row="">
                    {visibleText(issue.code)}
                  </Link>{' '}
                  {issue.field !== null && <code>{visibleText(issue.field)}</code>}{' '}
                  {visibleText(issue.message)} ({countText(issue.count)} times, last{' '}
                  <Time atMs={issue.last_at * 1000} isWhole />)
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </section>
  );
}
