/** The types of the messages that the workspace publishes; in the portal, those that a customer chooses among. */
import { useState } from 'react';
import { useResource } from '../client/resource.ts';
import { useReach, useSession } from '../client/session.ts';
import { PageButtons } from '../parts/page-buttons.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { EventTypeForm } from './event-type-form.tsx';
import type { EventType } from './event-type.ts';

const INTERVAL_MS = 5_000;

export const eventTypesRoute: Route = {
  pattern: '/event-types',
  title: () => 'Event types',
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <EventTypes start={query['start']} />,
};

function EventTypes({ start }: { readonly start: string | undefined }) {
  const { workspaceId, capabilities, notAllowed, isPortal } = useReach();
  const setQuery = useSetQuery();
  const [isMaking, setIsMaking] = useState(false);
  const isAllowed = capabilities.includes('workspace.manage');
  const resource = useResource<{ event_types: readonly EventType[]; next: string }>(
    `/v1/event_types?${isPortal ? '' : 'include=archived&'}start=${start ?? ''}`,
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  return (
    <>
      <header className="title">
        {isPortal && (
          <p className="above">
            <Link to="/">Webhooks</Link>
          </p>
        )}
        <h1>Event types</h1>
        <p className="lead">
          What messages there are, and what is in their payload.
          {!isPortal && ' A payload that does not fit the schema of its type is not published.'}
        </p>
        {!isPortal && (
          <div className="actions">
            <button
              type="button"
              className="main"
              disabled={!isAllowed}
              title={isAllowed ? undefined : notAllowed}
              onClick={() => setIsMaking(true)}
            >
              Make an event type
            </button>
          </div>
        )}
      </header>
      <Shown resource={resource}>
        {({ event_types: types, next }) => (
          <>
            {types.length > 0 && <EventTypeTable types={types} />}
            {types.length === 0 &&
              (isPortal ? <Empty title="No event type is described yet" /> : <NoEventType />)}
            <PageButtons
              start={start}
              next={next}
              names={['First', 'Next']}
              onStart={(to) => setQuery({ start: to }, false)}
            />
          </>
        )}
      </Shown>
      {isMaking && (
        <EventTypeForm
          onClose={() => setIsMaking(false)}
          onSaved={() => {
            setIsMaking(false);
            void resource.reload();
          }}
        />
      )}
    </>
  );
}

function EventTypeTable({ types }: { readonly types: readonly EventType[] }) {
  return (
    <table className="list">
      <caption className="unseen">Event types, by name</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Description</th>
          <th scope="col">Payload</th>
          <th scope="col">Since</th>
        </tr>
      </thead>
      <tbody>
        {types.map(({ name, description, schema, version, archived, created_at: createdAt }) => (
          <tr key={name}>
            <th scope="row" className="clip">
              <Link to={`/event-types/${segment(name)}`} data-row="">
                {visibleText(name)}
              </Link>
            </th>
            <td className="clip">{visibleText(description)}</td>
            <td>
              {archived ? 'archived' : schema === null ? 'any' : `schema, version ${version}`}
            </td>
            <td>
              <Time atMs={Date.parse(createdAt)} isWhole />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NoEventType() {
  const { intake_url: intakeUrl } = useSession();
  return (
    <Empty title="No event type is described yet">
      <p>
        An event type is the name of messages that you publish to your customers, with a description
        that they read and a JSON Schema that payloads must fit. Messages of a type that nobody has
        described are taken as they are.
      </p>
      <CallSample
        label="A type, by a call"
        method="PUT"
        path="/v1/event_types/invoice.paid"
        body={{
          description: 'An invoice is paid.',
          schema: {
            type: 'object',
            required: ['invoice_id'],
            properties: { total: { type: 'number', minimum: 0 } },
          },
        }}
      />
      <CallSample
        label="A message of it"
        method="POST"
        path="/v1/publish"
        intakeUrl={intakeUrl}
        body={{ event_type: 'invoice.paid', payload: { invoice_id: 'in_1', total: 9.5 } }}
      />
    </Empty>
  );
}
