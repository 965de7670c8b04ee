/** The filters of a list of deliveries; each is in the address. */
import { useEffect, useState } from 'react';
import { useReach } from '../client/session.ts';
import { FilterText, TYPED_AFTER_MS } from '../forms/filter-text.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { writeQuery } from '../routing/location.ts';
import { useRouting, useSetQuery } from '../routing/router.tsx';
import { LASTS, linkedQuery } from './delivery-range.ts';

const DELIVERY_STATES = ['pending', 'retrying', 'delivered', 'abandoned'];
const ANSWERS = ['2xx', '3xx', '4xx', '5xx', 'none'];

/** As the browser's field writes a time; here it is of UTC. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?$/;

/** The API knows no earlier time. */
const EARLIEST = '1970-01-01T00:00';

/** Of a route that has the filters. */
export const DELIVERY_QUERY = {
  state: DELIVERY_STATES,
  type: /^[a-z_*]{1,100}$/,
  person: /^[^]{1,150}$/,
  event: /^[^]{1,200}$/,
  answer: ANSWERS,
  since: TIME,
  until: TIME,
  last: Object.keys(LASTS),
  start: /^[\w-]{1,8192}$/,
};

type Query = Readonly<Record<string, string | undefined>>;

export const isFiltered = (query: Query): boolean =>
  ['state', 'type', 'person', 'event', 'answer', 'since', 'until', 'last'].some(
    (name) => query[name] !== undefined,
  );

/**
 * As the API calls them.
 *
 * @param query - with times in place of a duration (`withTimes`).
 */
export function askedFor(query: Query, limit: number): URLSearchParams {
  const { state, type, person, event, answer, start } = query;
  const since = secondsOf(query['since']);
  const until = secondsOf(query['until']);
  return new URLSearchParams({
    limit: String(limit),
    ...(state !== undefined && { state }),
    ...(type !== undefined && { event_type: type }),
    ...(person !== undefined && { person }),
    ...(event !== undefined && { event_id: event }),
    ...(answer !== undefined && { status_class: answer }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(start !== undefined && { start }),
  });
}

/** Unix seconds; undefined for a day that no calendar has, and for a year before 1970, which the API refuses. */
function secondsOf(time: string | undefined): string | undefined {
  const atMs = Date.parse(`${time}Z`);
  return Number.isNaN(atMs) || atMs < 0 ? undefined : String(Math.floor(atMs / 1000));
}

export function DeliveryFilters({
  query,
  nowMs,
  readAtMs,
}: {
  readonly query: Query;
  /** The present as the list began. */
  readonly nowMs: number;
  /** Of the rows that are shown; 0 before the first. */
  readonly readAtMs: number;
}) {
  const setQuery = useSetQuery();
  const { workspaceId, isPortal } = useReach();
  const { place } = useRouting();
  const set = (name: string) => (text: string | undefined) =>
    setQuery({ [name]: text, start: undefined });
  const setTime = (name: string) => (text: string | undefined) =>
    setQuery({ [name]: text, last: undefined, start: undefined });
  const link = writeQuery({
    ...linkedQuery(place.query, nowMs, Math.max(nowMs, readAtMs)),
    // The first workspace of another reader may be another one.
    ...(!isPortal && { workspace: String(workspaceId) }),
  });
  return (
    <>
      <FilterText label="Type" value={query['type']} onChange={set('type')} />
      <FilterText label="Person (id)" value={query['person']} onChange={set('person')} />
      <FilterText label="Event (id)" value={query['event']} onChange={set('event')} />
      <Choice
        label="State"
        value={query['state']}
        choices={DELIVERY_STATES}
        onChange={set('state')}
      />
      <Choice
        label="Last answer"
        value={query['answer']}
        choices={ANSWERS}
        onChange={set('answer')}
      />
      <Choice
        label="Logged in the last"
        value={query['last']}
        choices={Object.keys(LASTS)}
        onChange={(last) =>
          setQuery({ last, since: undefined, until: undefined, start: undefined })
        }
      />
      <TimeField label="Logged since (UTC)" value={query['since']} onChange={setTime('since')} />
      <TimeField label="Logged before (UTC)" value={query['until']} onChange={setTime('until')} />
      <CopyButton text={`${location.origin}${location.pathname}${link}`} label="Copy link" />
    </>
  );
}

/** The browser reports a time for each digit of the year: 0002, 0020, 0202. So it takes effect when the typing stops. */
function TimeField({
  label,
  value,
  onChange,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}) {
  const [text, setText] = useState(value ?? '');
  useEffect(() => setText(value ?? ''), [value]);
  useEffect(() => {
    if (text === (value ?? '') || (text !== '' && text < EARLIEST)) return undefined;
    const timer = setTimeout(() => onChange(text || undefined), TYPED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      {label}{' '}
      <input
        type="datetime-local"
        min={EARLIEST}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}

function Choice({
  label,
  value,
  choices,
  onChange,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly choices: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}) {
  return (
    <label>
      {label}{' '}
      <select
        value={value ?? ''}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      >
        <option value="">all</option>
        {choices.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
