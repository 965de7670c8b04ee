/** One application: its endpoints, a link to its portal, and its replays. */
import { useState } from 'react';
import { get, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach, useSession } from '../client/session.ts';
import { DeleteButton } from '../forms/delete-button.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Shown } from '../parts/states.tsx';
import { linkTo } from '../routing/location.ts';
import { Link, navigate, type Route, useRouting } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { ApplicationForm } from './application-form.tsx';
import { ApplicationReplay } from './application-replay.tsx';
import { Endpoints } from './endpoints.tsx';
import { NewPortalLink } from './new-portal-link.tsx';

export const applicationRoute: Route = {
  pattern: '/applications/:id',
  title: ({ id = '' }) => `Application ${visibleText(id)}`,
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { params, query } }) => (
    <ApplicationView key={params['id']} id={params['id'] ?? ''} start={query['start']} />
  ),
};

function ApplicationView({
  id,
  start,
}: {
  readonly id: string;
  readonly start: string | undefined;
}) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const { place } = useRouting();
  const [asked, setAsked] = useState<'name' | 'link'>();
  const path = { application_id: id };
  const application = useResource(get('/v1/applications/{application_id}', { path }), {
    workspaceId,
  });
  const isAllowed = capabilities.includes('workspace.manage');
  const close = (): void => setAsked(undefined);
  const button = (what: 'name' | 'link', text: string) => (
    <button
      type="button"
      disabled={!isAllowed}
      title={isAllowed ? undefined : notAllowed}
      onClick={() => setAsked(what)}
    >
      {text}
    </button>
  );
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/applications">Applications</Link>
        </p>
        <div className="row">
          <h1>{visibleText(application.data?.name ?? id)}</h1>
          <span className="grow" />
          {application.data && (
            <>
              {button('link', 'Portal link …')}
              {button('name', 'Rename …')}
              <DeleteButton
                call={remove('/v1/applications/{application_id}', { path })}
                name={id}
                what="the application"
                onDone={() => navigate(linkTo('/applications', place.query))}
              >
                <p>
                  Its endpoints and its links to the portal go with it. Deliveries that wait are not
                  sent any more.
                </p>
              </DeleteButton>
            </>
          )}
        </div>
        <p className="facts">
          <Copyable text={visibleText(id)} what="the id" />
        </p>
      </header>
      <Shown resource={application} lines={1}>
        {(shown) => (
          <>
            <Endpoints applicationId={id} start={start} />
            <ApplicationReplay applicationId={id} />
            <PublishSample id={id} />
            {asked === 'name' && (
              <ApplicationForm
                application={shown}
                onClose={close}
                onSaved={() => {
                  close();
                  void application.reload();
                }}
              />
            )}
            {asked === 'link' && <NewPortalLink applicationId={id} onClose={close} />}
          </>
        )}
      </Shown>
    </>
  );
}

function PublishSample({ id }: { readonly id: string }) {
  const { intake_url: intakeUrl } = useSession();
  return (
    <CallSample
      label="A message to it"
      method="POST"
      path="/v1/publish"
      intakeUrl={intakeUrl}
      body={{ application: id, event_type: 'order_placed', payload: { order_id: '42' } }}
    />
  );
}
