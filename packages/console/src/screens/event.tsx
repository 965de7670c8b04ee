/** The way of one event: from its call to each attempt to report it. */
import type { ReactNode } from 'react';
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Badge } from '../parts/badge.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route } from '../routing/router.tsx';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

type Trace = Described<'EventTrace'>;
type TracedDelivery = Trace['deliveries'][number];

/** An event that was just taken is looked for again: it is found once it is processed. */
const INTERVAL_MS = 2_000;

export const eventRoute: Route = {
  pattern: '/events/:id',
  title: ({ id }) => `Event ${id}`,
  query: {},
  screen: ({ place: { params } }) => <Event key={params['id']} id={params['id'] ?? ''} />,
};

function Event({ id }: { readonly id: string }) {
  const { workspaceId } = useSession();
  const resource = useResource(get('/v1/events/{event_id}/trace', { path: { event_id: id } }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  if (resource.data === undefined && resource.failure?.status === 404)
    return (
      <>
        <h1>Event</h1>
        <Copyable text={id} what="the id" />
        <Empty title="No event with this id is known here yet">
          <ul>
            <li>It may still wait to be processed. This page looks again every 2 seconds.</li>
            <li>It may be older than the events that this installation keeps.</li>
            <li>
              Only track, page and screen calls have an id. The effect of an identify call is on the
              page of its person.
            </li>
          </ul>
          <p>
            <Link to="/live">Live</Link> shows calls as they come in.
          </p>
        </Empty>
      </>
    );
  return (
    <Shown isScreen resource={resource}>
      {({ trace }) => <TraceView trace={trace} />}
    </Shown>
  );
}

function TraceView({ trace }: { readonly trace: Trace }) {
  const { received, envelope, event, deliveries } = trace;
  const deliveredCount = deliveries.filter(({ state }) => state === 'delivered').length;
  const name = event?.name ?? deliveries[0]?.event_type ?? event?.kind ?? 'Event';
  return (
    <>
      <header className="title">
        <h1>{visibleText(name)}</h1>
        <p className="facts">
          <Copyable text={trace.event_id} what="the id" />
          {event?.svc_id != null && (
            <Link to={`/people/${segment(event.svc_id)}`} query={{ by: 'svc_id' }}>
              Person {event.svc_id}
            </Link>
          )}
          {event !== null && event.svc_id === null && (
            <span>no person yet{event.anonymous_id === null ? '' : `: ${event.anonymous_id}`}</span>
          )}
          {trace.caused_by_event_id !== null && (
            <Link to={`/events/${segment(trace.caused_by_event_id)}`}>
              Caused by {trace.caused_by_event_id}
            </Link>
          )}
        </p>
        <p className="lead">{summaryOf(deliveries.length, deliveredCount)}</p>
      </header>
      <ol className="timeline" aria-label="Trace">
        {received && (
          <Step atMs={received.at_ms} title="Received" sinceMs={received.at_ms}>
            {received.source ?? 'by a call'}
          </Step>
        )}
        {envelope?.made_at_ms != null && (
          <Step atMs={envelope.made_at_ms} title="On disk" sinceMs={received?.at_ms}>
            with {envelope.operations === 1 ? 'nothing else' : `${envelope.operations - 1} others`},
            in batch <code>{envelope.id}</code>
          </Step>
        )}
        {envelope && (
          <Step atMs={envelope.processed_at_ms} title="Processed" sinceMs={received?.at_ms}>
            {event ? 'it is in the history of its person' : 'it belongs to no history'}
          </Step>
        )}
        {deliveries.map((delivery) => (
          <DeliveryStep
            key={`${delivery.webhook_id} ${delivery.sequence}`}
            delivery={delivery}
            sinceMs={received?.at_ms}
          />
        ))}
      </ol>
      {event && <EventBody id={trace.caused_by_event_id ?? trace.event_id} />}
    </>
  );
}

/** Data of the event. */
function EventBody({ id }: { readonly id: string }) {
  const { workspaceId } = useSession();
  const { data } = useResource(get('/v1/events/{event_id}', { path: { event_id: id } }), {
    workspaceId,
  });
  return data ? <JsonView value={data.event.data} label="Data of the event" /> : null;
}

function summaryOf(count: number, deliveredCount: number): string {
  if (count === 0) return 'No webhook reports it.';
  if (deliveredCount === count) return count === 1 ? 'Delivered.' : `Delivered to all ${count}.`;
  return `Delivered ${deliveredCount} of ${count}.`;
}

function Step({
  atMs,
  title,
  sinceMs,
  children,
  tone = 'good',
}: {
  readonly atMs: number;
  readonly title: string;
  /** Of the first step. */
  readonly sinceMs: number | undefined;
  readonly children: ReactNode;
  readonly tone?: string;
}) {
  const offsetMs = sinceMs === undefined ? 0 : atMs - sinceMs;
  return (
    <li className={tone}>
      <div className="when">
        <Time atMs={atMs} />
        {offsetMs > 0 && <span className="faint">+{durationText(offsetMs)}</span>}
      </div>
      <span className="dot" aria-hidden="true" />
      <div>
        <b>{title}</b> <span className="faint">{children}</span>
      </div>
    </li>
  );
}

function DeliveryStep({
  delivery,
  sinceMs,
}: {
  readonly delivery: TracedDelivery;
  readonly sinceMs: number | undefined;
}) {
  const last = delivery.attempts.at(-1);
  const tone = delivery.state === 'delivered' ? 'good' : last ? 'bad' : 'quiet';
  return (
    <Step
      atMs={last?.started_at_ms ?? delivery.logged_at_ms}
      title={`Webhook ${delivery.webhook_id}`}
      sinceMs={sinceMs}
      tone={tone}
    >
      <Badge state={delivery.state} /> <code>{delivery.event_type}</code>{' '}
      {delivery.attempts.map(({ attempt, status, failure, duration_ms: durationMs }) => (
        <span key={attempt} className="chip" title={`try ${attempt}, ${durationText(durationMs)}`}>
          {status ?? failure ?? '–'}
        </span>
      ))}{' '}
      <Link to={`/webhooks/${delivery.webhook_id}`} query={{ delivery: String(delivery.sequence) }}>
        Delivery {delivery.sequence}
      </Link>
    </Step>
  );
}
