/** The live tail: every call and every delivery attempt as it happens. */
import { useState } from 'react';
import { announce } from '../parts/announcer.tsx';
import { Badge } from '../parts/badge.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import { JsonView } from '../parts/json-view.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import {
  detailText,
  personOf,
  personText,
  type TailLine,
  type TailRow,
} from '../tail/tail-line.ts';
import { type TailView, useTail } from '../tail/use-tail.ts';

const OUTCOMES = [
  'accepted',
  'mended',
  'refused',
  'rate_limited',
  'overloaded',
  'delivered',
  'retrying',
  'abandoned',
];
const TEXT = /^[^]{1,500}$/;

export const liveRoute: Route = {
  pattern: '/live',
  title: () => 'Live',
  query: { outcome: OUTCOMES, person: TEXT, name: TEXT, paused: ['yes'] },
  screen: ({ place: { query } }) => <Live query={query} />,
};

function Live({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { outcome, person, name } = query;
  const isPaused = query['paused'] === 'yes';
  const setQuery = useSetQuery();
  // Numbers of lines, which begin anew with another filter.
  const filterKey = JSON.stringify([outcome, person, name]);
  const [open, setOpen] = useState<{ readonly filterKey: string; readonly number: number }>();
  const [pausedAt, setPausedAt] = useState({ filterKey, count: 0 });
  const openNumber = open?.filterKey === filterKey ? open.number : undefined;
  const pausedAtCount = pausedAt.filterKey === filterKey ? pausedAt.count : 0;
  const tail = useTail({ filter: { outcome, person, name }, isPaused });

  const setPaused = (isWanted: boolean): void => {
    setPausedAt({ filterKey, count: tail.lineCount });
    setQuery({ paused: isWanted ? 'yes' : undefined });
    announce(isWanted ? 'Paused' : 'Goes on');
  };
  const toggle = (number: number): void => {
    const isOpening = openNumber !== number;
    setOpen(isOpening ? { filterKey, number } : undefined);
    // Or it would move away under the reader.
    if (isOpening && !isPaused) setPaused(true);
  };
  const hasFilter = outcome !== undefined || person !== undefined || name !== undefined;
  return (
    <>
      <header className="title row">
        <h1>Live</h1>
        <Standing tail={tail} isPaused={isPaused} />
        <span className="grow" />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Go on' : 'Pause'}
        </button>
        <button type="button" onClick={tail.clear}>
          Clear
        </button>
        <button type="button" onClick={() => save(tail)} disabled={tail.rows.length === 0}>
          Save .ndjson
        </button>
      </header>
      <div className="filters" role="search" aria-label="Filters">
        <label>
          Outcome{' '}
          <select
            value={outcome ?? ''}
            onChange={(event) => setQuery({ outcome: event.currentTarget.value || undefined })}
          >
            <option value="">all</option>
            {OUTCOMES.map((each) => (
              <option key={each} value={each}>
                {each.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <FilterText label="Person" value={person} onChange={(text) => setQuery({ person: text })} />
        <FilterText label="Name" value={name} onChange={(text) => setQuery({ name: text })} />
        {hasFilter && (
          <button
            type="button"
            className="plain"
            onClick={() => setQuery({ outcome: undefined, person: undefined, name: undefined })}
          >
            Clear filters
          </button>
        )}
        {isPaused && (
          <span className="faint" role="status">
            {Math.max(0, tail.lineCount - pausedAtCount)} since pause
          </span>
        )}
      </div>
      {tail.failure && <Failure key={tail.failure.message} failure={tail.failure} />}
      {tail.rows.length === 0 ? (
        <Empty title={hasFilter ? 'No matching call has come yet' : 'No call has come yet'}>
          <p>
            Live shows calls as they come in; it does not keep them.{' '}
            {hasFilter ? 'The filters match whole texts.' : <Link to="/start">Send an event</Link>}
          </p>
        </Empty>
      ) : (
        <table className="list tail">
          <caption className="unseen">Latest lines, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Outcome</th>
              <th scope="col">What</th>
              <th scope="col">Person</th>
              <th scope="col">Detail</th>
            </tr>
          </thead>
          <tbody>
            {tail.rows.map((row) => (
              <TailRowView
                key={row.number}
                row={row}
                isOpen={row.number === openNumber}
                onToggle={() => toggle(row.number)}
              />
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Standing({ tail, isPaused }: { readonly tail: TailView; readonly isPaused: boolean }) {
  const refused =
    tail.lineCount === 0 ? 0 : Math.round((1000 * tail.refusedCount) / tail.lineCount) / 10;
  const state = isPaused ? 'paused' : tail.isOpen ? 'listening' : 'connecting';
  return (
    <p className="standing">
      <span className={`lamp ${state}`} aria-hidden="true" /> <span className="state">{state}</span>{' '}
      ·{' '}
      <b className="number" data-count="">
        {tail.lineCount}
      </b>{' '}
      lines ·{' '}
      {tail.droppedCount > 0 && (
        <>
          <b className="number" data-count="">
            {tail.droppedCount}
          </b>{' '}
          not shown ·{' '}
        </>
      )}
      refused <b className="number">{refused} %</b>
    </p>
  );
}

function TailRowView({
  row,
  isOpen,
  onToggle,
}: {
  readonly row: TailRow;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}) {
  if (row.kind === 'dropped')
    return (
      <tr className="gap">
        <td colSpan={5}>
          {row.count === null
            ? 'The connection was away: calls during that time are not shown.'
            : `${row.count} lines not shown: more than this page can read. A filter helps.`}
        </td>
      </tr>
    );
  return (
    <>
      <tr className={isOpen ? 'open' : ''} onClick={onToggle}>
        <td className="number">
          <Time atMs={row.at_ms} isShort />
        </td>
        <td>
          <Badge state={row.outcome} />
        </td>
        <td>
          <button
            type="button"
            className="cell"
            data-row=""
            aria-expanded={isOpen}
            onClick={(event) => {
              event.stopPropagation();
              onToggle();
            }}
          >
            {visibleText(
              row.name ?? String(row.details['type'] ?? row.details['source'] ?? row.kind),
            )}
          </button>
        </td>
        <td className="clip">{visibleText(personText(row))}</td>
        <td className="clip faint">{visibleText(detailText(row))}</td>
      </tr>
      {isOpen && (
        <tr className="detail">
          <td colSpan={5}>
            <LineDetail line={row} />
          </td>
        </tr>
      )}
    </>
  );
}

function LineDetail({ line }: { readonly line: TailLine }) {
  const person = personOf(line);
  const { event_id: eventId, webhook_id: webhookId, sequence } = line.details;
  const { number: _, ...shown } = line as TailLine & { number: number };
  return (
    <>
      <div className="actions">
        {typeof eventId === 'string' && (
          <Link className="button" to={`/events/${segment(eventId)}`}>
            Trace
          </Link>
        )}
        {typeof webhookId === 'number' && (
          <Link
            className="button"
            to={`/webhooks/${webhookId}`}
            query={{ delivery: String(sequence) }}
          >
            Webhook {webhookId}, delivery {String(sequence)}
          </Link>
        )}
        {person && (
          <Link
            className="button"
            to={`/people/${segment(person.value)}`}
            query={person.type === 'email' ? { by: 'email' } : {}}
          >
            Person {visibleText(person.value)}
          </Link>
        )}
      </div>
      <JsonView value={shown} label="The line" />
    </>
  );
}

/** Lines that the page has, as a file. */
function save(tail: TailView): void {
  const text = tail
    .all()
    .map(({ number: _, ...line }) => `${JSON.stringify(line)}\n`)
    .join('');
  const url = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `live-${new Date().toISOString().replaceAll(':', '-')}.ndjson`;
  link.click();
  URL.revokeObjectURL(url);
}
