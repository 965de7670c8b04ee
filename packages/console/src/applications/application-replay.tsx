/** Replays an application's messages to all its endpoints at once. Each then has a replay of its own. */
import { useState } from 'react';
import { post } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { useReach } from '../client/session.ts';
import { Link } from '../routing/router.tsx';
import { NewReplay, type Plan } from '../webhooks/new-replay.tsx';

/** With the status `running` a replay of the endpoint was already, and goes on. */
type ApplicationReplays = AnswerOf<'post', '/v1/applications/{application_id}/replays'>;

const planOf = ({ replays }: ApplicationReplays): Plan => ({
  count: replays.reduce((sum, { count }) => sum + (count ?? 0), 0),
  count_is_exact: replays.every((each) => each.count_is_exact !== false),
});

export function ApplicationReplay({ applicationId }: { readonly applicationId: string }) {
  const { capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const [begun, setBegun] = useState<ApplicationReplays>();
  // Of all endpoints: more than the replay of one webhook takes.
  const isAllowed = capabilities.includes('workspace.manage');
  return (
    <section className="stack" aria-labelledby="application-replays">
      <div className="row">
        <h2 id="application-replays">Replay</h2>
        <span className="grow" />
        <button
          type="button"
          disabled={!isAllowed}
          title={isAllowed ? undefined : notAllowed}
          onClick={() => setIsAsking(true)}
        >
          Replay all endpoints …
        </button>
      </div>
      {begun === undefined ? (
        <p className="faint">
          Deliveries of a time are sent to all endpoints again, such as deliveries that were given
          up while the customer was away.
        </p>
      ) : (
        <ul role="status">
          {begun.replays.map(({ endpoint_id: id, status, count }) => (
            <li key={id}>
              <Link to={`/webhooks/${id}`}>Endpoint {id}</Link>:{' '}
              {status === 'running'
                ? 'a replay was running, and goes on'
                : `sends ${count ?? 0} ${count === 1 ? 'delivery' : 'deliveries'} again`}
            </li>
          ))}
        </ul>
      )}
      {isAsking && (
        <NewReplay
          callOf={(body) =>
            post('/v1/applications/{application_id}/replays', {
              path: { application_id: applicationId },
              body,
            })
          }
          title="Replay all endpoints"
          planOf={planOf}
          onClose={() => setIsAsking(false)}
          onStarted={(answer) => {
            setIsAsking(false);
            setBegun(answer);
          }}
        />
      )}
    </section>
  );
}
