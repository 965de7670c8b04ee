/** The endpoints of an application. Each is a webhook: its deliveries, secrets and state are on the webhook's screen. */
import { get } from '../client/calls.ts';
import { MadeList } from '../lists/made-list.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { segment } from '../routing/location.ts';
import { Link } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import type { Webhook } from '../webhooks/configuration.ts';
import { WebhookForm } from '../webhooks/webhook-form.tsx';

export function Endpoints({
  applicationId,
  start,
}: {
  readonly applicationId: string;
  readonly start: string | undefined;
}) {
  return (
    <MadeList
      isSection
      title="Endpoints"
      call={get('/v1/applications/{application_id}/endpoints', {
        path: { application_id: applicationId },
        query: { start },
      })}
      making={{
        what: 'Make an endpoint',
        capability: 'workspace.manage',
        form: ({ onClose, onMade }) => (
          <WebhookForm applicationId={applicationId} onClose={onClose} onSaved={onMade} />
        ),
      }}
      isEmpty={({ endpoints }) => endpoints.length === 0}
      empty={
        <Empty title="It has no endpoint yet">
          <p>
            An endpoint is an address of this customer that is sent the messages that name it. Make
            one here, by a call, or let the customer make it in the portal.
          </p>
          <CallSample
            label="An endpoint, by a call"
            method="POST"
            path={`/v1/applications/${segment(applicationId)}/endpoints`}
            body={{ name: 'Orders', endpoint: 'https://example.com/hook' }}
          />
        </Empty>
      }
      table={({ endpoints }) => <EndpointTable endpoints={endpoints} />}
      pages={{ start, nextOf: ({ next }) => next }}
    />
  );
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly Webhook[] }) {
  return (
    <ListTable caption="Endpoints, oldest first" heads={['Name', 'Messages', 'State', 'Address']}>
      {endpoints.map(({ id, name, event_names: names, disabled, endpoint }) => (
        <tr key={id}>
          <th scope="row" className="clip">
            <Link to={`/webhooks/${id}`} data-row="">
              {visibleText(name)}
            </Link>
          </th>
          <td className="clip">{names === null ? 'all' : visibleText(names.join(', '))}</td>
          <td>
            <Badge state={disabled ? 'disabled' : 'active'} text={disabled ? 'paused' : 'active'} />
          </td>
          <td className="clip">
            <code>{visibleText(endpoint)}</code>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}
