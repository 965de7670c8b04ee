/** The endpoints of an application. Each is a webhook: its deliveries, secrets and state are on the webhook's screen. */
import { useState } from 'react';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { Badge } from '../parts/badge.tsx';
import { PageButtons } from '../parts/page-buttons.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { segment } from '../routing/location.ts';
import { Link, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import type { Webhook } from '../webhooks/configuration.ts';
import { WebhookForm } from '../webhooks/webhook-form.tsx';

const INTERVAL_MS = 5_000;

export function Endpoints({
  applicationId,
  start,
}: {
  readonly applicationId: string;
  readonly start: string | undefined;
}) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const setQuery = useSetQuery();
  const [isMaking, setIsMaking] = useState(false);
  const isAllowed = capabilities.includes('workspace.manage');
  const path = `/v1/applications/${segment(applicationId)}/endpoints`;
  const resource = useResource<{ endpoints: readonly Webhook[]; next: string }>(
    start === undefined ? path : `${path}?start=${start}`,
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  return (
    <section aria-labelledby="endpoints">
      <div className="row">
        <h2 id="endpoints">Endpoints</h2>
        <span className="grow" />
        <button
          type="button"
          className="main"
          disabled={!isAllowed}
          title={isAllowed ? undefined : notAllowed}
          onClick={() => setIsMaking(true)}
        >
          Make an endpoint
        </button>
      </div>
      <Shown resource={resource} lines={2}>
        {({ endpoints, next }) => (
          <>
            {endpoints.length > 0 ? (
              <EndpointTable endpoints={endpoints} />
            ) : (
              <Empty title="It has no endpoint yet">
                <p>
                  An endpoint is an address of this customer that is sent the messages that name it.
                  Make one here, by a call, or let the customer make it in the portal.
                </p>
                <CallSample
                  label="An endpoint, by a call"
                  method="POST"
                  path={path}
                  body={{ name: 'Orders', endpoint: 'https://example.com/hook' }}
                />
              </Empty>
            )}
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
        <WebhookForm
          applicationId={applicationId}
          onClose={() => setIsMaking(false)}
          onSaved={() => {
            setIsMaking(false);
            void resource.reload();
          }}
        />
      )}
    </section>
  );
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly Webhook[] }) {
  return (
    <table className="list">
      <caption className="unseen">Endpoints, oldest first</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Messages</th>
          <th scope="col">State</th>
          <th scope="col">Address</th>
        </tr>
      </thead>
      <tbody>
        {endpoints.map(({ id, name, event_names: names, disabled, endpoint }) => (
          <tr key={id}>
            <th scope="row" className="clip">
              <Link to={`/webhooks/${id}`} data-row="">
                {visibleText(name)}
              </Link>
            </th>
            <td className="clip">{names === null ? 'all' : visibleText(names.join(', '))}</td>
            <td>
              <Badge
                state={disabled ? 'disabled' : 'active'}
                text={disabled ? 'paused' : 'active'}
              />
            </td>
            <td className="clip">
              <code>{visibleText(endpoint)}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
