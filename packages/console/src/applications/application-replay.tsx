/** Replays an application's messages to all its endpoints at once. Each then has a replay of its own. */
import { useState } from 'react';
import { useReach } from '../client/session.ts';
import { Link } from '../routing/router.tsx';
import { NewReplay, type Plan } from '../webhooks/new-replay.tsx';

/** The answer of `POST /v1/applications/{id}/replays`. */
interface ApplicationReplays {
  readonly replays: readonly {
    readonly endpoint_id: number;
    /** `running`: a replay of it was already, and goes on. */
    readonly status: 'counted' | 'started' | 'running';
    readonly count?: number;
    readonly count_is_exact?: boolean;
  }[];
}

const planOf = ({ replays }: ApplicationReplays): Plan => ({
  count: replays.reduce((sum, { count = 0 }) => sum + count, 0),
  count_is_exact: replays.every((each) => each.count_is_exact !== false),
});

export function ApplicationReplay({
  path,
}: {
  /** Of the application. */
  readonly path: string;
}) {
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
          {begun.replays.map(({ endpoint_id: id, status, count = 0 }) => (
            <li key={id}>
              <Link to={`/webhooks/${id}`}>Endpoint {id}</Link>:{' '}
              {status === 'running'
                ? 'a replay was running, and goes on'
                : `sends ${count} ${count === 1 ? 'delivery' : 'deliveries'} again`}
            </li>
          ))}
        </ul>
      )}
      {isAsking && (
        <NewReplay<ApplicationReplays>
          path={`${path}/replays`}
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
