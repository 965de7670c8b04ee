/** Deliveries of a webhook, newest first. Also the attempts of the open one. */
import { get } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { type Resource, useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { useSetQuery } from '../routing/router.tsx';
import { SINCE_UNTIL, withTimes } from '../routing/time-range.ts';
import { useEffect, useMemo } from 'react';
import { visibleText } from '../sentences/visible-text.ts';
import type { Delivery, OfWebhook } from './delivery.ts';
import { DeliveryDetail } from './delivery-detail.tsx';
import { askedFor, DeliveryFilters, isFiltered } from './delivery-filters.tsx';
import { DeliveryHead, DeliveryRow } from './delivery-rows.tsx';
import { LongList, startBefore } from './long-list.tsx';
import { SelectedDeliveries } from './selected-deliveries.tsx';
import { useGoOn } from './use-go-on.ts';

const DELIVERIES = '/v1/reporting_webhooks/{webhook_id}/deliveries';
const PAGE_COUNT = 25;
const INTERVAL_MS = 3_000;

export function Deliveries({
  webhookId,
  query,
  changeCount,
}: OfWebhook & {
  readonly query: Readonly<Record<string, string>>;
  /** Grows with each action on the webhook. */
  readonly changeCount: number;
}) {
  const { workspaceId } = useReach();
  const setQuery = useSetQuery();
  const { start, delivery, at } = query;
  // Frozen: a range that moved with the clock would be another list each second.
  const nowMs = useMemo(() => Date.now(), [query['last']]);
  const asked = withTimes(query, nowMs, SINCE_UNTIL);
  const page = useResource(
    get(DELIVERIES, { path: { webhook_id: webhookId }, query: askedFor(asked, PAGE_COUNT) }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const goTo = useGoOn(page.data, JSON.stringify(askedFor({ ...asked, start: undefined }, 0)));
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
        <DeliveryFilters query={query} nowMs={nowMs} readAtMs={page.readAtMs} />
      </div>
      {delivery !== undefined && (
        <OpenDelivery webhookId={webhookId} sequence={Number(delivery)} query={query} page={page} />
      )}
      <SelectedDeliveries
        webhookId={webhookId}
        selected={query['selected']}
        onSent={() => void page.reload()}
      >
        <Shown resource={page}>
          {({ deliveries, next }) => (
            <>
              {deliveries.length === 0 && (
                <Empty title={emptyTitleOf(query)}>
                  <p>
                    {next === ''
                      ? 'A delivery comes with the first event of a type that the webhook selects.'
                      : 'Older ones were not looked through yet: go on by “Older”.'}
                  </p>
                </Empty>
              )}
              {deliveries.length > 0 &&
                (isLong(query, next) ? (
                  <LongList
                    webhookId={webhookId}
                    newest={deliveries[0]?.sequence ?? 0}
                    readAtMs={page.readAtMs}
                    at={at === undefined ? undefined : Number(at)}
                    openSequence={delivery}
                    onOpen={open}
                  />
                ) : (
                  <DeliveryTable deliveries={deliveries} openSequence={delivery} onOpen={open} />
                ))}
              {!isLong(query, next) && <PageButtons start={start} next={next} onStart={goTo} />}
            </>
          )}
        </Shown>
      </SelectedDeliveries>
    </section>
  );
}

/** An unfiltered list with more than a page is numbered without gaps, and scrolled. */
const isLong = (query: Readonly<Record<string, string>>, next: string): boolean =>
  !isFiltered(query) && query['start'] === undefined && next !== '';

const emptyTitleOf = (query: Readonly<Record<string, string>>): string => {
  const { state, type, person, event, answer, since, until, last } = query;
  if ([person, event, answer, since, until, last].some((each) => each !== undefined))
    return 'No delivery fits';
  if (type !== undefined)
    return `No delivery of ${visibleText(type)}${state === undefined ? '' : ` is ${state}`}`;
  return state === undefined ? 'There is no delivery yet' : `No delivery is ${state}`;
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
      <DeliveryHead />
      <tbody>
        {deliveries.map((each) => (
          <DeliveryRow
            key={each.sequence}
            delivery={each}
            isOpen={openSequence === String(each.sequence)}
            onOpen={onOpen}
          />
        ))}
      </tbody>
    </table>
  );
}

/** The one that the address names: of the page, or read by itself. */
function OpenDelivery({
  webhookId,
  sequence,
  query,
  page,
}: OfWebhook & {
  readonly sequence: number;
  readonly query: Readonly<Record<string, string>>;
  readonly page: Resource<AnswerOf<'get', typeof DELIVERIES>> & {
    readonly reload: () => Promise<void>;
  };
}) {
  const { workspaceId } = useReach();
  const onPage = page.data?.deliveries.find((each) => each.sequence === sequence);
  // The list begins behind the position that it is given.
  const start = startBefore(sequence + 1);
  const own = useResource(
    onPage || page.data === undefined
      ? undefined
      : get(DELIVERIES, { path: { webhook_id: webhookId }, query: { limit: 1, start } }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const found = onPage ?? own.data?.deliveries.find((each) => each.sequence === sequence);
  if (found)
    return (
      <DeliveryDetail
        webhookId={webhookId}
        delivery={found}
        attempt={query['attempt']}
        language={query['verify']}
        onChanged={() => void page.reload()}
      />
    );
  if (own.data)
    return <Empty title={`Delivery ${sequence} is not kept here any more, or was never there`} />;
  return null;
}
