/** The filters of a list of deliveries; each is in the address. */
import { FilterText } from '../forms/filter-text.tsx';
import { useSetQuery } from '../routing/router.tsx';

const DELIVERY_STATES = ['pending', 'retrying', 'delivered', 'abandoned'];
const ANSWERS = ['2xx', '3xx', '4xx', '5xx', 'none'];

/** Of a route that has the filters. */
export const DELIVERY_QUERY = {
  state: DELIVERY_STATES,
  type: /^[a-z_*]{1,100}$/,
  person: /^[^]{1,150}$/,
  event: /^[^]{1,200}$/,
  answer: ANSWERS,
  start: /^[\w-]{1,8192}$/,
};

type Query = Readonly<Record<string, string>>;

export const isFiltered = ({ state, type, person, event, answer }: Query): boolean =>
  [state, type, person, event, answer].some((each) => each !== undefined);

/** As the API calls them. */
export function askedFor(query: Query, limit: number): URLSearchParams {
  const { state, type, person, event, answer, start } = query;
  return new URLSearchParams({
    limit: String(limit),
    ...(state !== undefined && { state }),
    ...(type !== undefined && { event_type: type }),
    ...(person !== undefined && { person }),
    ...(event !== undefined && { event_id: event }),
    ...(answer !== undefined && { status_class: answer }),
    ...(start !== undefined && { start }),
  });
}

export function DeliveryFilters({ query }: { readonly query: Query }) {
  const setQuery = useSetQuery();
  const set = (name: string) => (text: string | undefined) =>
    setQuery({ [name]: text, start: undefined });
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
    </>
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
