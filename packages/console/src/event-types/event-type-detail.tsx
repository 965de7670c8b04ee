/** One event type: its payload in each version, a check of payloads, and how it is published. */
import { useState } from 'react';
import { get, put, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach, useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { DeleteButton } from '../forms/delete-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { linkTo } from '../routing/location.ts';
import { Link, navigate, type Route, useRouting, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { EventTypeForm } from './event-type-form.tsx';
import type { EventType, JsonSchema } from './event-type.ts';
import { PayloadCheck } from './payload-check.tsx';

/** Earlier ones are forgotten. */
const KEPT_VERSION_COUNT = 100;

export const eventTypeRoute: Route = {
  pattern: '/event-types/:name',
  title: ({ name = '' }) => `Event type ${visibleText(name)}`,
  query: { version: /^[1-9]\d{0,9}$/ },
  screen: ({ place: { params, query } }) => (
    <EventTypeView name={params['name'] ?? ''} version={query['version']} />
  ),
};

function EventTypeView({
  name,
  version,
}: {
  readonly name: string;
  /** Absent: the one in force. */
  readonly version: string | undefined;
}) {
  const { workspaceId, capabilities, notAllowed, isPortal } = useReach();
  const { place } = useRouting();
  const [isChanging, setIsChanging] = useState(false);
  const isAllowed = capabilities.includes('workspace.manage');
  const path = { name };
  const current = useResource(get('/v1/event_types/{name}', { path }), { workspaceId });
  const earlier = useResource(
    version === undefined ? undefined : get('/v1/event_types/{name}', { path, query: { version } }),
    { workspaceId },
  );
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/event-types">Event types</Link>
        </p>
        <div className="row">
          <h1>{visibleText(name)}</h1>
          <span className="grow" />
          {!isPortal && current.data && (
            <>
              <button
                type="button"
                disabled={!isAllowed}
                title={isAllowed ? undefined : notAllowed}
                onClick={() => setIsChanging(true)}
              >
                Change …
              </button>
              <ArchiveButtons
                type={current.data}
                onDone={() => void current.reload()}
                onDeleted={() => navigate(linkTo('/event-types', place.query))}
              />
            </>
          )}
        </div>
      </header>
      <Shown resource={current} lines={4}>
        {(type) => (
          <>
            {type.archived && (
              <p>It is archived: publishing refuses it, and customers do not see it.</p>
            )}
            {type.description !== '' && <p>{visibleText(type.description)}</p>}
            <Versions current={type.version} shown={version} />
            {version === undefined ? (
              <Schema type={type} />
            ) : (
              <Shown resource={earlier} lines={4}>
                {(shown) => <Schema type={shown} />}
              </Shown>
            )}
            {!isPortal && (
              <>
                <PayloadCheck id="check" name={name} isAny={type.schema === null} />
                <PublishSample name={name} />
              </>
            )}
            {isChanging && (
              <EventTypeForm
                type={type}
                onClose={() => setIsChanging(false)}
                onSaved={() => {
                  setIsChanging(false);
                  void current.reload();
                }}
              />
            )}
          </>
        )}
      </Shown>
    </>
  );
}

/** A type is deleted once it is archived: then it cannot be published any more. */
function ArchiveButtons({
  type,
  onDone,
  onDeleted,
}: {
  readonly type: EventType;
  readonly onDone: () => void;
  readonly onDeleted: () => void;
}) {
  const path = { name: type.name };
  if (!type.archived)
    return (
      <ActionButton
        call={remove('/v1/event_types/{name}', { path })}
        capability="workspace.manage"
        done="The event type is archived"
        onDone={onDone}
      >
        Archive
      </ActionButton>
    );
  return (
    <>
      <ActionButton
        call={put('/v1/event_types/{name}', {
          path,
          body: { description: type.description, schema: type.schema as JsonSchema },
        })}
        capability="workspace.manage"
        done="The event type is back"
        onDone={onDone}
      >
        Bring it back
      </ActionButton>
      <DeleteButton
        call={remove('/v1/event_types/{name}', { path, query: { forget: 'true' } })}
        name={type.name}
        what="the event type"
        onDone={onDeleted}
      >
        <p>
          All its versions are forgotten. Messages of the type are taken as they are from then on.
        </p>
      </DeleteButton>
    </>
  );
}

function Versions({
  current,
  shown,
}: {
  readonly current: number;
  readonly shown: string | undefined;
}) {
  const setQuery = useSetQuery();
  if (current === 1) return null;
  const oldest = Math.max(1, current - KEPT_VERSION_COUNT + 1);
  const versions = Array.from({ length: current - oldest + 1 }, (_, index) => current - index);
  return (
    <div className="filters">
      <label>
        Version{' '}
        <select
          data-filter=""
          value={shown ?? ''}
          onChange={(event) => setQuery({ version: event.currentTarget.value || undefined }, false)}
        >
          {versions.map((each) => (
            <option key={each} value={each === current ? '' : String(each)}>
              {each === current ? `${each}, in force` : each}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Schema({ type }: { readonly type: EventType }) {
  return (
    <section aria-label="Payload">
      <p className="faint">
        Version {type.version}, since <Time atMs={Date.parse(type.created_at)} isWhole />
      </p>
      {type.schema === null ? (
        <p>Any payload: this version has no schema.</p>
      ) : (
        <JsonView value={type.schema} label="JSON Schema of the payload" />
      )}
    </section>
  );
}

function PublishSample({ name }: { readonly name: string }) {
  const { intake_url: intakeUrl } = useSession();
  return (
    <CallSample
      label="A message of it"
      method="POST"
      path="/v1/publish"
      intakeUrl={intakeUrl}
      body={{ event_type: name, payload: {} }}
    />
  );
}
