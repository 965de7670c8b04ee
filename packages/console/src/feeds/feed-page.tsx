/** A page of a feed. To look moves no cursor: a consumer's cursor is its own. */
import { get } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

type FeedEvent = AnswerOf<'get', '/v1/feeds/{name}'>['events'][number];

/** As a webhook gets it; each type has more members of its own. */
interface SentEvent {
  readonly metric: string;
  /** Unix seconds. */
  readonly timestamp: number;
}

const PAGE_COUNT = 20;
const INTERVAL_MS = 5_000;

export function FeedPage({
  name,
  cursor,
  event,
}: {
  /** Of the feed. */
  readonly name: string;
  /** Absent: from the oldest event. */
  readonly cursor: string | undefined;
  /** The cursor of the one that is open. */
  readonly event: string | undefined;
}) {
  const { workspaceId } = useReach();
  const setQuery = useSetQuery();
  const page = useResource(
    get('/v1/feeds/{name}', {
      path: { name },
      query: { limit: String(PAGE_COUNT), wait: '0', cursor },
    }),
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
    <ListTable
      caption="Events, in the order of the feed"
      heads={['Cursor', 'Type', 'What', 'Happened']}
    >
      {events.map(({ cursor, event_type: type, event }) => {
        const isOpen = cursor === open;
        const { metric, timestamp } = event as SentEvent;
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
            <td className="clip">{visibleText(metric)}</td>
            <td>
              <Time atMs={timestamp * 1000} isWhole />
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
    </ListTable>
  );
}
