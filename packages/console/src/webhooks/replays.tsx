/** Sends deliveries of a webhook again: how many that would be, the start, and how far it is. */
import { useEffect, useRef, useState } from 'react';
import { request } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Badge } from '../parts/badge.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

interface Replay {
  readonly id: number;
  readonly state: 'running' | 'done' | 'cancelled';
  readonly failing: boolean;
  readonly rate_per_second: number;
  readonly total: number | null;
  readonly delivered: number;
  readonly abandoned: number;
  /** Unix seconds. */
  readonly created_at: number;
  readonly created_by: string;
}

interface Plan {
  readonly count: number;
  readonly count_is_exact: boolean;
}

const INTERVAL_MS = 2_000;

export function Replays({ base }: { readonly base: string }) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const path = `${base}/replays`;
  const resource = useResource<{ replays: readonly Replay[] }>(path, {
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
            <p className="faint">Nothing was replayed in 30 days.</p>
          ) : (
            <ReplayTable path={path} replays={replays} onChanged={() => void resource.reload()} />
          )
        }
      </Shown>
      {isAsking && (
        <NewReplay
          path={path}
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

function ReplayTable({
  path,
  replays,
  onChanged,
}: {
  readonly path: string;
  readonly replays: readonly Replay[];
  readonly onChanged: () => void;
}) {
  return (
    <table className="list">
      <caption className="unseen">Replays, the newest first</caption>
      <thead>
        <tr>
          <th scope="col">Begun</th>
          <th scope="col">By</th>
          <th scope="col">State</th>
          <th scope="col">Sent</th>
          <th scope="col">
            <span className="unseen">Cancel</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {replays.map((replay) => (
          <tr key={replay.id}>
            <th scope="row">
              <Time atMs={replay.created_at * 1000} isWhole />
            </th>
            <td>{visibleText(replay.created_by)}</td>
            <td>
              <Badge state={replay.failing ? 'failing' : replay.state} />
            </td>
            <td>
              {replay.delivered} of {replay.total ?? 'many'}
              {replay.abandoned > 0 && `, ${replay.abandoned} given up`}
            </td>
            <td>
              {replay.state === 'running' && (
                <ActionButton
                  path={`${path}/${replay.id}/cancel`}
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
      </tbody>
    </table>
  );
}

/** First counts what matches, then sends what was counted. */
function NewReplay({
  path,
  onClose,
  onStarted,
}: {
  readonly path: string;
  readonly onClose: () => void;
  readonly onStarted: () => void;
}) {
  const { workspaceId } = useReach();
  const [asked, setAsked] = useState<Record<string, unknown>>();
  const [plan, setPlan] = useState<Plan>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const first = useRef<HTMLFormElement>(null);
  // How many it would be as the form is when it opens.
  useEffect(() => {
    if (first.current) count(first.current);
  }, []);
  const count = (form: HTMLFormElement): void => {
    const seconds = (name: string): number | undefined => {
      const text = formText(form, name);
      return text === '' ? undefined : Math.floor(Date.parse(`${text}Z`) / 1000);
    };
    const states = formText(form, 'states');
    const email = formText(form, 'person');
    const person = email.includes('@') ? { email } : { id: email };
    const body = {
      since: seconds('since'),
      until: seconds('until'),
      states: states === '' ? ['delivered', 'abandoned'] : [states],
      ...(email !== '' && { person }),
      rate_per_second: Number(formText(form, 'rate')),
    };
    void run(async () => {
      setPlan(undefined);
      setAsked(body);
      setPlan(
        await request<Plan>(path, {
          method: 'POST',
          body: { ...body, dry_run: true },
          workspaceId,
        }),
      );
    });
  };
  const start = (): void =>
    void run(async () => {
      await callOnce(path, { method: 'POST', body: asked, workspaceId });
      announce('The replay has begun');
      onStarted();
    });
  const rate = Number(asked?.['rate_per_second'] ?? 1);
  return (
    <Dialog title="Replay deliveries" onClose={onClose}>
      <form
        ref={first}
        onSubmit={(event) => {
          event.preventDefault();
          count(event.currentTarget);
        }}
        onInput={() => setPlan(undefined)}
      >
        <p>Those that match are sent again in their order, beside what happens meanwhile.</p>
        <label htmlFor="replay-since">Logged since (UTC)</label>
        <input id="replay-since" name="since" type="datetime-local" step="1" />
        <label htmlFor="replay-until">Logged before (UTC)</label>
        <input id="replay-until" name="until" type="datetime-local" step="1" />
        <label htmlFor="replay-states">What became of them</label>
        <select id="replay-states" name="states">
          <option value="">delivered or given up</option>
          <option value="abandoned">given up</option>
          <option value="delivered">delivered</option>
        </select>
        <label htmlFor="replay-person">About the person (id or email)</label>
        <input id="replay-person" name="person" autoComplete="off" spellCheck={false} />
        <label htmlFor="replay-rate">Requests a second</label>
        <input id="replay-rate" name="rate" type="number" min="1" max="1000" defaultValue="10" />
        <div className="actions">
          <button type="submit" className={plan ? '' : 'main'} disabled={isRunning}>
            Count them
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
        <Refusal problem={problem} />
      </form>
      {plan && (
        <div role="status">
          <p>
            {plan.count_is_exact ? '' : 'At least '}
            {plan.count} {plan.count === 1 ? 'delivery matches' : 'deliveries match'}
            {plan.count > 0 && `: about ${durationText((plan.count / rate) * 1000)} at this rate`}.
          </p>
          {plan.count > 0 && (
            <button type="button" className="main" disabled={isRunning} onClick={start}>
              Send {plan.count_is_exact ? plan.count : 'them'} again
            </button>
          )}
        </div>
      )}
    </Dialog>
  );
}
