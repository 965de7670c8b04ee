/** The audit log: changes with their actors, newest first, filtered by the address, and as a file. */
import { useMemo } from 'react';
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FilterChoice } from '../forms/filter-choice.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import { RangeLink } from '../forms/range-link.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Time, useZone } from '../parts/time.tsx';
import { boundOfDay, dayOf, zoneLabel } from '../routing/field-time.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { FROM_TO, LASTS, type RangeQuery, withTimes } from '../routing/time-range.ts';
import { ACTOR_TYPES, actorText, type AuditEntry } from '../sentences/audit-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { AuditExport, type AuditFilters } from './audit-export.tsx';

const ACTIONS = [
  'created',
  'updated',
  'deleted',
] as const satisfies readonly AuditFilters['action'][];
const NUMBER = /^[1-9]\d{0,9}$/;
const DAY = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z)?$/;

export const auditRoute: Route = {
  pattern: '/audit',
  title: () => 'Audit log',
  query: {
    object: /^[a-z_]{1,64}$/,
    id: /^[^]{1,200}$/,
    action: ACTIONS,
    actor: Object.keys(ACTOR_TYPES),
    user: NUMBER,
    credential: NUMBER,
    session: NUMBER,
    ip: /^[\d.:a-fA-F]{1,45}$/,
    from: DAY,
    to: DAY,
    last: LASTS,
    start: NUMBER,
  },
  capability: 'account.manage',
  screen: ({ place: { query } }) => <Audit query={query} />,
};

/** From the parameters of the address to the API's. */
const FILTERS = {
  object: 'object_type',
  id: 'object_id',
  action: 'action',
  actor: 'actor_type',
  user: 'user_id',
  credential: 'credential_id',
  session: 'session_id',
  ip: 'ip_addr',
  from: 'start_time',
  to: 'end_time',
} as const satisfies Readonly<Record<string, keyof AuditFilters>>;

/** With the values that the route admits; a filter that needs another one is left out without that one. */
function filterOf(query: RangeQuery): AuditFilters {
  return Object.fromEntries(
    Object.entries(FILTERS).flatMap(([name, field]) => {
      const value = query[name];
      if (value === undefined) return [];
      const needsObject = name === 'id' || name === 'action';
      if (needsObject && query['object'] === undefined) return [];
      const isDay = value.length === 10 && (name === 'from' || name === 'to');
      if (!isDay) return [[field, value]];
      return [[field, boundOfDay(value, name === 'from' ? 'first' : 'last', false)]];
    }),
  );
}

function Audit({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const path = { account_id: account.id };
  // Frozen: a range that moved with the clock would be another list each second.
  const nowMs = useMemo(() => Date.now(), [query['last']]);
  const filters = filterOf(withTimes(query, nowMs, FROM_TO));
  const { start } = query;
  const resource = useResource(
    get('/v1/accounts/{account_id}/audit_logs', {
      path,
      query: { limit: 50, ...filters, cursor: start },
    }),
  );
  const options = useResource(get('/v1/accounts/{account_id}/audit_logs/field_options', { path }));
  const filter = (change: Record<string, string | undefined>): void =>
    setQuery({ ...change, start: undefined });
  const labels = new Map(
    options.data?.object_types.map((each) => [each.object_type, each.label]) ?? [],
  );
  return (
    <>
      <header className="title">
        <h1>Audit log</h1>
        <p className="lead">
          Every change of the account, in a chain that shows if one was altered.
        </p>
      </header>
      <div className="filters" role="search" aria-label="Filters">
        <label>
          Object{' '}
          <select
            data-filter=""
            value={query['object'] ?? ''}
            onChange={(event) =>
              filter({
                object: event.currentTarget.value || undefined,
                id: undefined,
                action: undefined,
              })
            }
          >
            <option value="">all</option>
            {[...labels].map(([type, label]) => (
              <option key={type} value={type}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {query['object'] !== undefined && (
          <label>
            Change{' '}
            <select
              value={query['action'] ?? ''}
              onChange={(event) => filter({ action: event.currentTarget.value || undefined })}
            >
              <option value="">all</option>
              {ACTIONS.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          By{' '}
          <select
            value={query['actor'] ?? ''}
            onChange={(event) => filter({ actor: event.currentTarget.value || undefined })}
          >
            <option value="">all</option>
            {Object.entries(ACTOR_TYPES).map(([type, name]) => (
              <option key={type} value={type}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <FilterText
          label="Key"
          name="credential"
          takes="the number of a key, such as 12"
          value={query['credential']}
          onChange={(text) => filter({ credential: text })}
        />
        <FilterText
          label="User"
          name="user"
          takes="the number of a user, such as 12"
          value={query['user']}
          onChange={(text) => filter({ user: text })}
        />
        <FilterText
          label="Session"
          name="session"
          takes="the number of a session, such as 12"
          value={query['session']}
          onChange={(text) => filter({ session: text })}
        />
        <FilterText
          label="Address"
          name="ip"
          takes="the beginning of an address: 10.0. is a range"
          value={query['ip']}
          onChange={(text) => filter({ ip: text })}
        />
        <FilterChoice
          label="In the last"
          value={query['last']}
          choices={LASTS}
          onChange={(last) => filter({ last, from: undefined, to: undefined })}
        />
        <DayField
          label="From"
          end="first"
          value={query['from']}
          onChange={(from) => filter({ from, last: undefined })}
        />
        <DayField
          label="To"
          end="last"
          value={query['to']}
          onChange={(to) => filter({ to, last: undefined })}
        />
        <RangeLink form={FROM_TO} nowMs={nowMs} readAtMs={resource.readAtMs} />
        <AuditExport filters={filters} />
      </div>
      <Shown resource={resource}>
        {({ audit_logs: entries, meta }) =>
          entries.length === 0 ? (
            <Empty
              title={Object.keys(filters).length > 0 ? 'No change matches' : 'No change yet'}
            />
          ) : (
            <>
              <EntryTable entries={entries} labels={labels} />
              <PageButtons
                start={start}
                next={meta.next_cursor === null ? '' : String(meta.next_cursor)}
                onStart={(to) => setQuery({ start: to }, false)}
              />
            </>
          )
        }
      </Shown>
    </>
  );
}

function EntryTable({
  entries,
  labels,
}: {
  readonly entries: readonly AuditEntry[];
  readonly labels: ReadonlyMap<string, string>;
}) {
  return (
    <ListTable
      caption="Changes, the newest first"
      heads={['At', 'Who', 'Did', 'Changed', 'Address']}
    >
      {entries.map((entry) => (
        <tr key={entry.id}>
          <th scope="row">
            <Time atMs={Date.parse(entry.occurred_at)} />
          </th>
          <td>{visibleText(actorText(entry.actor))}</td>
          <td>
            <Link to={`/audit/${entry.id}`} data-row="">
              {entry.action} {labels.get(entry.object_type) ?? entry.object_type}
            </Link>{' '}
            <span className="faint">{visibleText(entry.object_name ?? entry.object_id)}</span>
          </td>
          <td>{entry.changed_attributes.join(', ')}</td>
          <td>
            <code>{entry.ip_addr ?? ''}</code>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

/** A day of UTC stands in the address as it is, a local one as a time. */
function DayField({
  label,
  end,
  value,
  onChange,
}: {
  readonly label: string;
  /** The millisecond of the day that bounds the list. */
  readonly end: 'first' | 'last';
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}) {
  const { isLocal } = useZone();
  return (
    <label>
      {label} ({zoneLabel(isLocal)}){' '}
      <input
        type="date"
        value={value === undefined ? '' : dayOf(value, end, isLocal)}
        onChange={({ currentTarget: { value: day } }) =>
          onChange(day && isLocal ? boundOfDay(day, end, true) : day || undefined)
        }
      />
    </label>
  );
}
