/** The webhooks of the workspace, each with the state of its deliveries. */
import { get } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { MadeList } from '../lists/made-list.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { useNow, useZone } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { laneSentence } from '../sentences/lane-sentence.ts';
import { FIRST_WEBHOOK } from '../sentences/snippets.ts';
import { subscriptionText } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { Webhook } from './configuration.ts';
import { PortalForm } from './portal-form.tsx';
import { WebhookForm } from './webhook-form.tsx';

export const webhooksRoute: Route = {
  pattern: '/webhooks',
  title: () => 'Webhooks',
  query: {},
  screen: () => <Webhooks />,
};

export function Webhooks() {
  const { isPortal } = useReach();
  return (
    <MadeList
      title="Webhooks"
      call={get('/v1/reporting_webhooks', { query: { include: 'state,stats' } })}
      links={
        isPortal ? (
          <Link to="/event-types">Event types</Link>
        ) : (
          <>
            <Link to="/deliveries">Deliveries of all</Link>
            <Link to="/portal-links">Portal links</Link>
          </>
        )
      }
      making={{
        what: 'Make a webhook',
        capability: 'webhooks.create',
        form: ({ onClose, onMade }) =>
          isPortal ? (
            <PortalForm onClose={onClose} onSaved={onMade} />
          ) : (
            <WebhookForm onClose={onClose} onSaved={onMade} />
          ),
      }}
      isEmpty={({ reporting_webhooks: webhooks }) => webhooks.length === 0}
      empty={<NoWebhook />}
      table={({ reporting_webhooks: webhooks }) => <WebhookTable webhooks={webhooks} />}
    />
  );
}

function NoWebhook() {
  const { isPortal } = useReach();
  return (
    <Empty title="There is no webhook yet">
      <p>
        A webhook is an address of yours that gets incoming calls, and events about people and
        messages: signed, tried again, in order for each person. Make one here
        {!isPortal && ', or by a call: this one is sent each order that is placed'}.
      </p>
      {!isPortal && (
        <CallSample
          label="A webhook for each order, by a call"
          method="POST"
          path="/v1/reporting_webhooks"
          body={FIRST_WEBHOOK}
        />
      )}
    </Empty>
  );
}

function WebhookTable({ webhooks }: { readonly webhooks: readonly Webhook[] }) {
  return (
    <ListTable
      caption="Webhooks of the workspace"
      heads={['Name', 'Is sent', 'State', 'Deliveries', 'Failed, last hour', 'Endpoint']}
    >
      {webhooks.map((webhook) => (
        <WebhookRow key={webhook.id} webhook={webhook} />
      ))}
    </ListTable>
  );
}

/** A share of attempts, with their number. */
const shareText = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${Math.round((100 * part) / whole)} % of ${whole}`;

function WebhookRow({ webhook }: { readonly webhook: Webhook }) {
  const nowMs = useNow();
  const zone = useZone();
  const { state, stats } = webhook;
  return (
    <tr>
      <th scope="row">
        <Link to={`/webhooks/${webhook.id}`} data-row="">
          {visibleText(webhook.name)}
        </Link>
      </th>
      <td className="clip">{visibleText(subscriptionText(webhook))}</td>
      <td>
        {state && (
          <Badge state={state.state} text={state.state === 'disabled' ? 'paused' : state.state} />
        )}
      </td>
      <td>{state && visibleText(laneSentence(state, nowMs, zone).text)}</td>
      <td className="number">{stats && shareText(stats.failed, stats.delivered + stats.failed)}</td>
      <td className="clip">
        <code>{visibleText(webhook.endpoint)}</code>
      </td>
    </tr>
  );
}
