/** A page of a feed. To look moves no cursor: a consumer's cursor is its own. */
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { Copyable } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

interface FeedEvent {
  readonly cursor: string;
  readonly event_type: string;
  /** As a webhook gets it. */
  readonly event: {
    readonly event_id: string;
    readonly object_type: string;
    readonly metric: string;
    /** Unix seconds. */
    readonly timestamp: number;
  };
}

interface Page {
  readonly events: readonly FeedEvent[];
  /** To go on with. */
  readonly cursor: string;
}

const PAGE_COUNT = 20;
const INTERVAL_MS = 5_000;

export function FeedPage({
  path,
  cursor,
  event,
}: {
  readonly path: string;
  /** Absent: from the oldest event. */
  readonly cursor: string | undefined;
  /** The cursor of the one that is open. */
  readonly event: string | undefined;
}) {
  const { workspaceId } = useReach();
  const setQuery = useSetQuery();
  const page = useResource<Page>(
    `${path}?limit=${PAGE_COUNT}&wait=0${cursor === undefined ? '' : `&cursor=${cursor}`}`,
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  const go = (to: string | undefined): void => setQuery({ cursor: to, event: undefined }, false);
  return (
    <section aria-labelledby="feed-events">
      <h2 id="feed-events">
        {cursor === undefined ? 'Events, from the oldest' : `Events after ${cursor}`}
      </h2>
      {cursor !== undefined && (
        <div className="actions">
          <button type="button" onClick={() => go(undefined)}>
            From the oldest
          </button>
        </div>
      )}
      <Shown resource={page}>
        {({ events, cursor: next }) =>
          events.length === 0 ? (
            <Empty title="There is no later event yet">
              <p>The next event that the feed takes is shown here.</p>
            </Empty>
          ) : (
            <>
              <EventTable
                events={events}
                open={event}
                onOpen={(each) => setQuery({ event: each === event ? undefined : each }, false)}
              />
              <div className="actions">
                <button type="button" onClick={() => go(next)}>
                  Next page
                </button>
                <span>
                  After this page a reader asks with{' '}
                  <Copyable text={next} what="the cursor of the page" />
                </span>
              </div>
            </>
          )
        }
      </Shown>
    </section>
  );
}

function EventTable({
  events,
  open,
  onOpen,
}: {
  readonly events: readonly FeedEvent[];
  readonly open: string | undefined;
  readonly onOpen: (cursor: string) => void;
}) {
  return (
    <table className="list">
      <caption className="unseen">Events, in the order of the feed</caption>
      <thead>
        <tr>
          <th scope="col">Cursor</th>
          <th scope="col">Type</th>
          <th scope="col">What</th>
          <th scope="col">Happened</th>
        </tr>
      </thead>
      <tbody>
        {events.map(({ cursor, event_type: type, event }) => {
          const isOpen = cursor === open;
          return [
            <tr key={cursor} className={isOpen ? 'open' : ''} onClick={() => onOpen(cursor)}>
              <th scope="row">
                <button
                  type="button"
                  className="cell"
                  data-row=""
                  aria-expanded={isOpen}
                  onClick={(click) => {
                    click.stopPropagation();
                    onOpen(cursor);
                  }}
                >
                  {cursor}
                </button>
              </th>
              <td className="clip">{visibleText(type)}</td>
              <td className="clip">{visibleText(event.metric)}</td>
              <td>
                <Time atMs={event.timestamp * 1000} isWhole />
              </td>
            </tr>,
            isOpen && (
              <tr key={`${cursor} detail`} className="detail">
                <td colSpan={4}>
                  <JsonView value={event} label="The event, as a webhook gets it" />
                </td>
              </tr>
            ),
          ];
        })}
      </tbody>
    </table>
  );
}
