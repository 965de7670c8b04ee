/** The live tail: every call and every delivery attempt as it happens. */
import { useState } from 'react';
import { announce } from '../parts/announcer.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import type { FilterOf } from '../json/json-tree.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { choiceOf } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { saveTail } from '../tail/save-tail.ts';
import { type TailFilter, type TailView, useTail, WAITS_FOR_TAB } from '../tail/use-tail.ts';
import { TailRowView } from './live-rows.tsx';

const OUTCOMES = [
  'accepted',
  'mended',
  'refused',
  'rate_limited',
  'overloaded',
  'delivered',
  'retrying',
  'abandoned',
] as const satisfies readonly TailFilter['outcome'][];
const TEXT = /^[^]{1,500}$/;
const NUMBER = /^[1-9]\d{0,8}$/;
/** Part of a line → its filter. */
const FILTER_OF_PART: Readonly<Record<string, string>> = {
  outcome: 'outcome',
  name: 'name',
  'details.source': 'source',
  'details.webhook_id': 'webhook',
};
const PERSON_PATH = /^people\[\d+\]\.\w+$/;

const NO_FILTER = {
  outcome: undefined,
  person: undefined,
  name: undefined,
  source: undefined,
  webhook: undefined,
};

export const liveRoute: Route = {
  pattern: '/live',
  title: () => 'Live',
  query: {
    outcome: OUTCOMES,
    person: TEXT,
    name: TEXT,
    source: TEXT,
    webhook: NUMBER,
    paused: ['yes'],
  },
  screen: ({ place: { query } }) => <Live query={query} />,
};

function Live({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { outcome, person, name, source, webhook } = query;
  const isPaused = query['paused'] === 'yes';
  const setQuery = useSetQuery();
  // Numbers of lines, which begin anew with another filter.
  const filterKey = JSON.stringify([outcome, person, name, source, webhook]);
  const [open, setOpen] = useState<{ readonly filterKey: string; readonly number: number }>();
  const [pausedAt, setPausedAt] = useState({ filterKey, count: 0 });
  const openNumber = open?.filterKey === filterKey ? open.number : undefined;
  const pausedAtCount = pausedAt.filterKey === filterKey ? pausedAt.count : 0;
  const tail = useTail({
    filter: { outcome: choiceOf(OUTCOMES, outcome), person, name, source, webhook_id: webhook },
    isPaused,
  });

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
  const filterOf: FilterOf = (path, value) => {
    const field = PERSON_PATH.test(path) ? 'person' : FILTER_OF_PART[path];
    if (field === undefined || (typeof value !== 'string' && typeof value !== 'number'))
      return undefined;
    // Beside the other filters. The page goes on: it has no line of another filter yet.
    const { paused: _, ...others } = query;
    return { ...others, [field]: String(value) };
  };
  const hasFilter = [outcome, person, name, source, webhook].some((each) => each !== undefined);
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
        <button type="button" onClick={() => saveTail(tail)} disabled={tail.rows.length === 0}>
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
        <FilterText
          label="Person"
          name="person"
          value={person}
          onChange={(text) => setQuery({ person: text })}
        />
        <FilterText
          label="Name"
          name="name"
          value={name}
          onChange={(text) => setQuery({ name: text })}
        />
        <FilterText
          label="Source"
          name="source"
          value={source}
          onChange={(text) => setQuery({ source: text })}
        />
        <FilterText
          label="Webhook"
          name="webhook"
          takes="the number of a webhook, such as 2"
          value={webhook}
          onChange={(text) => setQuery({ webhook: text })}
        />
        {hasFilter && (
          <button type="button" className="plain" onClick={() => setQuery(NO_FILTER)}>
            Clear filters
          </button>
        )}
        {isPaused && (
          <span className="faint" role="status">
            {Math.max(0, tail.lineCount - pausedAtCount)} since pause
          </span>
        )}
      </div>
      {tail.isWaiting && <p role="status">{WAITS_FOR_TAB}</p>}
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
                filterOf={filterOf}
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
  const notOpen = tail.isWaiting ? 'waits' : 'connecting';
  const state = isPaused ? 'paused' : tail.isOpen ? 'listening' : notOpen;
  return (
    <p className="standing">
      <span className={`lamp ${state}`} aria-hidden="true" /> <span className="state">{state}</span>{' '}
      ·{' '}
      <b className="number" data-count="lines">
        {tail.lineCount}
      </b>{' '}
      lines ·{' '}
      {tail.droppedCount > 0 && (
        <>
          <b className="number" data-count="not shown">
            {tail.droppedCount}
          </b>{' '}
          not shown ·{' '}
        </>
      )}
      refused <b className="number">{refused} %</b>
    </p>
  );
}
