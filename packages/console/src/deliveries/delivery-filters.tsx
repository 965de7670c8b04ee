/** The filters of a list of deliveries; each is in the address. */
import type { QueryOf } from '../client/operations.ts';
import { FilterChoice } from '../forms/filter-choice.tsx';
import { FilterText } from '../forms/filter-text.tsx';
import { RangeFilter } from '../forms/range-filter.tsx';
import { choiceOf } from '../routing/location.ts';
import { useSetQuery } from '../routing/router.tsx';
import { secondsOf, TIMES_QUERY } from '../routing/time-range.ts';

type Asked = QueryOf<'/v1/deliveries'>;

const DELIVERY_STATES = [
  'pending',
  'retrying',
  'delivered',
  'abandoned',
] as const satisfies readonly Asked['state'][];
const ANSWERS = [
  '2xx',
  '3xx',
  '4xx',
  '5xx',
  'none',
] as const satisfies readonly Asked['status_class'][];

/** Of a route that has the filters. */
export const DELIVERY_QUERY = {
  state: DELIVERY_STATES,
  type: /^[a-z_*]{1,100}$/,
  person: /^[^]{1,150}$/,
  event: /^[^]{1,200}$/,
  answer: ANSWERS,
  ...TIMES_QUERY,
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
export const askedFor = (query: Query, limit: number) => ({
  limit,
  state: choiceOf(DELIVERY_STATES, query['state']),
  event_type: query['type'],
  person: query['person'],
  event_id: query['event'],
  status_class: choiceOf(ANSWERS, query['answer']),
  since: secondsOf(query['since']),
  until: secondsOf(query['until']),
  start: query['start'],
});

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
  const set = (name: string) => (text: string | undefined) =>
    setQuery({ [name]: text, start: undefined });
  return (
    <>
      <FilterText
        label="Type"
        name="type"
        takes="a type in small letters, such as customer_subscribed"
        value={query['type']}
        onChange={set('type')}
      />
      <FilterText
        label="Person (id)"
        name="person"
        value={query['person']}
        onChange={set('person')}
      />
      <FilterText label="Event (id)" name="event" value={query['event']} onChange={set('event')} />
      <FilterChoice
        label="State"
        value={query['state']}
        choices={DELIVERY_STATES}
        onChange={set('state')}
      />
      <FilterChoice
        label="Last answer"
        value={query['answer']}
        choices={ANSWERS}
        onChange={set('answer')}
      />
      <RangeFilter
        verb="Logged"
        query={query}
        nowMs={nowMs}
        readAtMs={readAtMs}
        onChange={(change) => setQuery({ ...change, start: undefined })}
      />
    </>
  );
}
