/** The webhooks of the workspace, each with the state of its deliveries. */
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Badge } from '../parts/badge.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { useIsLocal, useNow } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { type LaneState, laneSentence } from '../sentences/lane-sentence.ts';
import { visibleText } from '../sentences/visible-text.ts';

export interface Webhook {
  readonly id: number;
  readonly name: string;
  readonly endpoint: string;
  readonly events: readonly string[];
  readonly disabled: boolean;
}

const INTERVAL_MS = 5_000;

export const webhooksRoute: Route = {
  pattern: '/webhooks',
  title: () => 'Webhooks',
  query: {},
  screen: () => <Webhooks />,
};

function Webhooks() {
  const { workspaceId } = useSession();
  const resource = useResource<{ reporting_webhooks: readonly Webhook[] }>(
    '/v1/reporting_webhooks',
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  return (
    <>
      <header className="title">
        <h1>Webhooks</h1>
      </header>
      <Shown resource={resource}>
        {({ reporting_webhooks: webhooks }) =>
          webhooks.length === 0 ? (
            <Empty title="There is no webhook yet">
              <p>
                Make one with <a href="/docs">POST /v1/reporting_webhooks</a>: it reports what
                happens to people and messages.
              </p>
            </Empty>
          ) : (
            <table className="list">
              <caption className="unseen">Webhooks of the workspace</caption>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">State</th>
                  <th scope="col">Deliveries</th>
                  <th scope="col">Endpoint</th>
                </tr>
              </thead>
              <tbody>
                {webhooks.map((webhook) => (
                  <WebhookRow key={webhook.id} webhook={webhook} />
                ))}
              </tbody>
            </table>
          )
        }
      </Shown>
    </>
  );
}

function WebhookRow({ webhook }: { readonly webhook: Webhook }) {
  const { workspaceId } = useSession();
  const nowMs = useNow();
  const isLocal = useIsLocal();
  const { data } = useResource<LaneState>(`/v1/reporting_webhooks/${webhook.id}/state`, {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  return (
    <tr>
      <th scope="row">
        <Link to={`/webhooks/${webhook.id}`} data-row="">
          {visibleText(webhook.name)}
        </Link>
      </th>
      <td>
        {data && (
          <Badge state={data.state} text={data.state === 'disabled' ? 'paused' : data.state} />
        )}
      </td>
      <td>
        {data ? (
          laneSentence(data, nowMs, { isLocal }).text
        ) : (
          <span className="waiting faint">…</span>
        )}
      </td>
      <td className="clip">
        <code>{visibleText(webhook.endpoint)}</code>
      </td>
    </tr>
  );
}
