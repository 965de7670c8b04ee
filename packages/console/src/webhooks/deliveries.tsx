/** The deliveries of a webhook, newest first, and the attempts of the one that is open. */
import { type Resource, useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { FilterText } from '../forms/filter-text.tsx';
import { PageButtons } from '../parts/page-buttons.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useSetQuery } from '../routing/router.tsx';
import { useEffect } from 'react';
import { visibleText } from '../sentences/visible-text.ts';
import type { Delivery } from './delivery.ts';
import { DeliveryDetail } from './delivery-detail.tsx';

export const DELIVERY_STATES = ['pending', 'retrying', 'delivered', 'abandoned'];

interface Page {
  readonly deliveries: readonly Delivery[];
  readonly next: string;
}

const PAGE_COUNT = 25;
const INTERVAL_MS = 3_000;

export function Deliveries({
  base,
  query,
  changeCount,
}: {
  /** `/v1/reporting_webhooks/1` */
  readonly base: string;
  readonly query: Readonly<Record<string, string>>;
  /** Goes up where something was done to the webhook. */
  readonly changeCount: number;
}) {
  const { workspaceId } = useReach();
  const setQuery = useSetQuery();
  const { state, type, start, delivery } = query;
  const asked = new URLSearchParams({
    limit: String(PAGE_COUNT),
    ...(state !== undefined && { state }),
    ...(type !== undefined && { event_type: type }),
    ...(start !== undefined && { start }),
  });
  const page = useResource<Page>(`${base}/deliveries?${asked.toString()}`, {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  useEffect(() => {
    if (changeCount > 0) void page.reload();
  }, [changeCount, page.reload]);
  const open = (sequence: number): void =>
    setQuery(
      {
        delivery: delivery === String(sequence) ? undefined : String(sequence),
        attempt: undefined,
      },
      false,
    );
  return (
    <section aria-labelledby="deliveries-title">
      <div className="row">
        <h2 id="deliveries-title">Deliveries</h2>
        <span className="grow" />
        <FilterText
          label="Type"
          value={type}
          onChange={(text) => setQuery({ type: text, start: undefined })}
        />
        <label>
          State{' '}
          <select
            value={state ?? ''}
            onChange={(event) =>
              setQuery({ state: event.currentTarget.value || undefined, start: undefined })
            }
          >
            <option value="">all</option>
            {DELIVERY_STATES.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      </div>
      {delivery !== undefined && (
        <OpenDelivery base={base} sequence={Number(delivery)} query={query} page={page} />
      )}
      <Shown resource={page}>
        {({ deliveries, next }) => (
          <>
            {deliveries.length === 0 ? (
              <Empty title={emptyTitleOf({ state, type })}>
                <p>
                  {next === ''
                    ? 'A delivery comes with the first event of a type that the webhook selects.'
                    : 'The latest 10,000 were looked at; there are older ones.'}
                </p>
              </Empty>
            ) : (
              <DeliveryTable deliveries={deliveries} openSequence={delivery} onOpen={open} />
            )}
            <PageButtons
              start={start}
              next={next}
              onStart={(to) => setQuery({ start: to }, false)}
            />
          </>
        )}
      </Shown>
    </section>
  );
}

const emptyTitleOf = ({ state, type }: Readonly<Record<string, string | undefined>>): string => {
  if (type !== undefined)
    return `No delivery of ${visibleText(type)}${state === undefined ? '' : ` is ${state}`}`;
  return state === undefined ? 'Nothing was sent yet' : `No delivery is ${state}`;
};

function DeliveryTable({
  deliveries,
  openSequence,
  onOpen,
}: {
  readonly deliveries: readonly Delivery[];
  readonly openSequence: string | undefined;
  readonly onOpen: (sequence: number) => void;
}) {
  return (
    <table className="list">
      <caption className="unseen">Deliveries, newest first</caption>
      <thead>
        <tr>
          <th scope="col">#</th>
          <th scope="col">Type</th>
          <th scope="col">State</th>
          <th scope="col">Attempts</th>
          <th scope="col">Logged</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((each) => (
          <tr
            key={each.sequence}
            className={openSequence === String(each.sequence) ? 'open' : ''}
            onClick={() => onOpen(each.sequence)}
          >
            <th scope="row" className="number">
              <button
                type="button"
                className="cell"
                data-row=""
                aria-expanded={openSequence === String(each.sequence)}
                onClick={(event) => {
                  event.stopPropagation();
                  onOpen(each.sequence);
                }}
              >
                {each.sequence}
              </button>
            </th>
            <td>
              <code>{each.event_type}</code>
              {each.origin !== 'event' && <span className="chip">{each.origin}</span>}
            </td>
            <td>
              <Badge state={each.state} />
            </td>
            <td>
              {each.attempts.map(({ attempt, status, failure }) => (
                <span key={attempt} className="chip">
                  {status ?? failure ?? '–'}
                </span>
              ))}
            </td>
            <td className="number">
              <Time atMs={each.created_at * 1000} isWhole />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The one that the address names: of the page, or read by itself. */
function OpenDelivery({
  base,
  sequence,
  query,
  page,
}: {
  readonly base: string;
  readonly sequence: number;
  readonly query: Readonly<Record<string, string>>;
  readonly page: Resource<Page> & { readonly reload: () => Promise<void> };
}) {
  const { workspaceId } = useReach();
  const onPage = page.data?.deliveries.find((each) => each.sequence === sequence);
  // The list begins behind the position that it is given.
  const start = btoa(`[${sequence + 1}]`).replaceAll('=', '');
  const own = useResource<Page>(
    onPage || page.data === undefined ? undefined : `${base}/deliveries?limit=1&start=${start}`,
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const found = onPage ?? own.data?.deliveries.find((each) => each.sequence === sequence);
  if (found)
    return (
      <DeliveryDetail
        base={base}
        delivery={found}
        attempt={query['attempt']}
        onChanged={() => void page.reload()}
      />
    );
  if (own.data)
    return <Empty title={`Delivery ${sequence} is not kept here any more, or was never there`} />;
  return null;
}
