/** One person: identifiers, attributes, and activities. */
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { choiceOf, segment } from '../routing/location.ts';
import { isPathStep } from '../routing/person-address.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { activityText } from '../sentences/activity-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { AttributeHistory } from './attribute-history.tsx';
import { ID_TYPES, type OfPerson } from './people.tsx';
import { Relationships } from './relationships.tsx';

type Customer = Described<'Customer'>;

const INTERVAL_MS = 5_000;
/** Shown above already, or twice. */
const IN_HEADER: ReadonlySet<string> = new Set(['id', 'email', 'svc_id', 'cio_id']);
/** Activities that an event's page can be opened for. */
const WITH_TRACE: ReadonlySet<string> = new Set(['event', 'page', 'screen']);

export const personRoute: Route = {
  pattern: '/people/:id',
  title: ({ id }) => `Person ${id}`,
  query: {
    by: ID_TYPES,
    tab: ['relationships', 'devices'],
    start: /^[\w-]{1,2048}$/,
    open: /^[^]{1,500}$/,
    attribute: /^[^]{1,150}$/,
  },
  screen: ({ place: { params, query } }) => (
    <Person key={params['id']} id={params['id'] ?? ''} query={query} />
  ),
};

function Person({
  id,
  query,
}: {
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { workspaceId } = useSession();
  const person: OfPerson = {
    path: { identifier: id },
    idType: choiceOf(ID_TYPES, query['by']) ?? 'id',
  };
  const resource = useResource(
    get('/v1/customers/{identifier}/attributes', {
      path: person.path,
      query: { id_type: person.idType },
    }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  return (
    <Shown isScreen resource={resource}>
      {({ customer }) => (
        <>
          <PersonHeader customer={customer} />
          <div className="columns">
            <Attributes attributes={customer.attributes} {...person} open={query['attribute']} />
            <section>
              <Tabs tab={query['tab']} customer={customer} />
              {query['tab'] === undefined && <Activities {...person} query={query} />}
              {query['tab'] === 'relationships' && (
                <Relationships {...person} start={query['start']} />
              )}
              {query['tab'] === 'devices' && <Devices devices={customer.devices} />}
            </section>
          </div>
        </>
      )}
    </Shown>
  );
}

function PersonHeader({ customer }: { readonly customer: Customer }) {
  const { id, email, svc_id: svcId } = customer.identifiers;
  const firstSeen = customer.timestamps['svc_id'];
  return (
    <header className="title">
      <p className="above">
        <Link to="/people">People</Link>
      </p>
      <h1>{visibleText(id ?? email ?? svcId)}</h1>
      <p className="facts">
        {email !== null && <Copyable text={visibleText(email)} what="the email" />}
        <Copyable text={svcId} what="the svc_id" />
        <span>{customer.unsubscribed ? 'unsubscribed' : 'subscribed'}</span>
        {firstSeen !== undefined && (
          <span>
            first seen <Time atMs={firstSeen * 1000} isWhole />
          </span>
        )}
      </p>
    </header>
  );
}

function Attributes({
  attributes,
  path,
  idType,
  open,
}: OfPerson & {
  readonly attributes: Customer['attributes'];
  /** The name of the one whose history is shown. */
  readonly open: string | undefined;
}) {
  const setQuery = useSetQuery();
  const shown = Object.entries(attributes)
    .filter(([name]) => !IN_HEADER.has(name))
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return (
    <section aria-labelledby="attributes-title">
      <h2 id="attributes-title">Attributes</h2>
      {shown.length === 0 ? (
        <p className="faint">None.</p>
      ) : (
        <dl className="pairs">
          {shown.map(([name, value]) => (
            <div key={name}>
              <dt>
                <button
                  type="button"
                  className="cell"
                  aria-expanded={open === name}
                  title="Its earlier values"
                  onClick={() => setQuery({ attribute: open === name ? undefined : name }, false)}
                >
                  {visibleText(name)}
                </button>
              </dt>
              <dd>
                {visibleText(value)}
                {open === name && <AttributeHistory path={path} idType={idType} name={name} />}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function Tabs({
  tab,
  customer,
}: {
  readonly tab: string | undefined;
  readonly customer: Customer;
}) {
  const setQuery = useSetQuery();
  const tabs = [
    [undefined, 'Activity'],
    ['relationships', 'Relationships'],
    ['devices', `Devices ${customer.devices.length}`],
  ] as const;
  return (
    <div className="tabs" role="group" aria-label="Parts of the person">
      {tabs.map(([name, text]) => (
        <button
          key={text}
          type="button"
          aria-pressed={tab === name}
          onClick={() => setQuery({ tab: name, start: undefined, open: undefined }, false)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

function Activities({
  path,
  idType,
  query,
}: OfPerson & {
  readonly query: Readonly<Record<string, string>>;
}) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const { start, open } = query;
  const resource = useResource(
    get('/v1/customers/{identifier}/activities', {
      path,
      query: { id_type: idType, limit: 25, start },
    }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  return (
    <Shown resource={resource}>
      {({ activities, next }) => (
        <>
          {activities.length === 0 && <Empty title="No activity in the last 30 days" />}
          <ol className="timeline whole">
            {activities.map((activity) => (
              <li key={activity.id} className="quiet">
                <div className="when">
                  <Time atMs={activity.timestamp * 1000} isWhole />
                </div>
                <span className="dot" aria-hidden="true" />
                <div>
                  <button
                    type="button"
                    className="cell"
                    data-row=""
                    aria-expanded={open === activity.id}
                    onClick={() =>
                      setQuery({ open: open === activity.id ? undefined : activity.id }, false)
                    }
                  >
                    {visibleText(activity.name ?? activity.type.replaceAll('_', ' '))}
                  </button>{' '}
                  <span className="chip">{activity.type.replaceAll('_', ' ')}</span>{' '}
                  {WITH_TRACE.has(activity.type) && !isPathStep(activity.id) && (
                    <Link to={`/events/${segment(activity.id)}`}>Trace</Link>
                  )}
                  {open !== activity.id && (
                    <p className="faint">{visibleText(activityText(activity.data))}</p>
                  )}
                  {open === activity.id && <JsonView value={activity.data} label="Its data" />}
                </div>
              </li>
            ))}
          </ol>
          <PageButtons start={start} next={next} onStart={(to) => setQuery({ start: to }, false)} />
        </>
      )}
    </Shown>
  );
}

function Devices({ devices }: { readonly devices: Customer['devices'] }) {
  if (devices.length === 0) return <Empty title="No device" />;
  return (
    <dl className="pairs">
      {devices.map((device) => (
        <div key={device.id}>
          <dt>{visibleText(device.platform)}</dt>
          <dd>
            <code>{visibleText(device.id)}</code>{' '}
            {device.last_used !== null && (
              <span className="faint">
                last used <Time atMs={device.last_used * 1000} isWhole />
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
