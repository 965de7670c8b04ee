/** The feeds of the workspace: the events of a webhook, to be read at one's own pace instead. */
import { get } from '../client/calls.ts';
import { MadeList } from '../lists/made-list.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { subscriptionText } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { FeedForm } from './feed-form.tsx';
import { type Feed, keptCountOf } from './feed.ts';

export const feedsRoute: Route = {
  pattern: '/feeds',
  title: () => 'Feeds',
  query: {},
  screen: () => <Feeds />,
};

function Feeds() {
  return (
    <MadeList
      title="Feeds"
      call={get('/v1/feeds')}
      lead="A consumer reads a feed at its own pace, by a cursor, and needs no address of its own."
      making={{
        what: 'Make a feed',
        capability: 'workspace.manage',
        form: ({ onClose, onMade }) => <FeedForm onClose={onClose} onSaved={onMade} />,
      }}
      isEmpty={({ feeds }) => feeds.length === 0}
      empty={<NoFeed />}
      table={({ feeds }) => <FeedTable feeds={feeds} />}
    />
  );
}

function FeedTable({ feeds }: { readonly feeds: readonly Feed[] }) {
  return (
    <ListTable
      caption="Feeds, by name"
      heads={['Name', 'Takes', { text: 'Events kept', form: 'right' }, 'Latest cursor', 'Made']}
    >
      {feeds.map((feed) => (
        <tr key={feed.name}>
          <th scope="row" className="clip">
            <Link to={`/feeds/${feed.name}`} data-row="">
              {feed.name}
            </Link>
          </th>
          <td className="clip">{visibleText(subscriptionText(feed))}</td>
          <td className="number right">{keptCountOf(feed)}</td>
          <td>
            <code>{feed.latest}</code>
          </td>
          <td>
            <Time atMs={Date.parse(feed.created_at)} isWhole />
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function NoFeed() {
  return (
    <Empty title="There is no feed yet">
      <p>
        A feed keeps what a webhook would be sent, for 7 days or 10 GB a workspace. A consumer reads
        a page, saves its cursor with its results, and asks with it again: it misses nothing, also
        where it was killed meanwhile.
      </p>
      <CallSample
        label="A feed, by a call"
        method="PUT"
        path="/v1/feeds/warehouse"
        body={{ events: ['event', 'message'] }}
      />
      <CallSample label="Its events, from the oldest on" path="/v1/feeds/warehouse?cursor=" />
    </Empty>
  );
}
