/** Sends deliveries of a webhook again: how many that would be, the start, and how far it is. */
import { useState } from 'react';
import { get, post } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import type { OfWebhook } from '../deliveries/delivery.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { NewReplay, type Plan } from './new-replay.tsx';

type Replay = Described<'Replay'>;

const INTERVAL_MS = 2_000;

export function Replays({ webhookId }: OfWebhook) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const path = { webhook_id: webhookId };
  const resource = useResource(get('/v1/reporting_webhooks/{webhook_id}/replays', { path }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  const isAllowed = capabilities.includes('deliveries.replay');
  return (
    <section className="stack" aria-labelledby="replays">
      <div className="row">
        <h2 id="replays">Replays</h2>
        <span className="grow" />
        <button
          type="button"
          disabled={!isAllowed}
          title={isAllowed ? undefined : notAllowed}
          onClick={() => setIsAsking(true)}
        >
          Replay …
        </button>
      </div>
      <Shown resource={resource} lines={1}>
        {({ replays }) =>
          replays.length === 0 ? (
            <p className="faint">There was no replay in 30 days.</p>
          ) : (
            <ReplayTable
              webhookId={webhookId}
              replays={replays}
              onChanged={() => void resource.reload()}
            />
          )
        }
      </Shown>
      {isAsking && (
        <NewReplay
          callOf={(body) => post('/v1/reporting_webhooks/{webhook_id}/replays', { path, body })}
          title="Replay deliveries"
          planOf={(counted): Plan => counted}
          onClose={() => setIsAsking(false)}
          onStarted={() => {
            setIsAsking(false);
            void resource.reload();
          }}
        />
      )}
    </section>
  );
}

function Range({ since, until }: Replay['criteria']) {
  if (since === undefined && until === undefined) return <>at any time</>;
  return (
    <>
      {since !== undefined && (
        <>
          from <Time atMs={since * 1000} isWhole />{' '}
        </>
      )}
      {until !== undefined && (
        <>
          to <Time atMs={until * 1000} isWhole />
        </>
      )}
    </>
  );
}

/** The rate, and the least time until the end. */
function paceOf({ rate_per_second: rate, total, delivered, abandoned }: Replay): string {
  const left = total === null ? undefined : Math.max(0, total - delivered - abandoned);
  const until = left === undefined ? '' : `, ${durationText((left / rate) * 1_000)} left at least`;
  return `, at most ${rate} a second${until}`;
}

function ReplayTable({
  webhookId,
  replays,
  onChanged,
}: OfWebhook & {
  readonly replays: readonly Replay[];
  readonly onChanged: () => void;
}) {
  return (
    <ListTable
      caption="Replays, the newest first"
      heads={['Begun', 'By', 'Logged', 'State', 'Sent', { text: 'Cancel', form: 'unseen' }]}
    >
      {replays.map((replay) => (
        <tr key={replay.id}>
          <th scope="row">
            <Time atMs={replay.created_at * 1000} isWhole />
          </th>
          <td>{visibleText(replay.created_by)}</td>
          <td>
            <Range {...replay.criteria} />
          </td>
          <td>
            <Badge state={replay.failing ? 'failing' : replay.state} />
          </td>
          <td>
            {replay.delivered} of {replay.total ?? 'many'}
            {replay.abandoned > 0 && `, ${replay.abandoned} given up`}
            {replay.state === 'running' && paceOf(replay)}
          </td>
          <td>
            {replay.state === 'running' && (
              <ActionButton
                call={post('/v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/cancel', {
                  path: { webhook_id: webhookId, replay_id: replay.id },
                })}
                capability="deliveries.replay"
                done="The replay is cancelled"
                onDone={onChanged}
              >
                Cancel
              </ActionButton>
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}
