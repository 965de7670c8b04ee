/** The feeds of the workspace: what a webhook is sent, to be read at one's own pace instead. */
import { useState } from 'react';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { CallSample } from '../parts/samples.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { subscriptionText } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { FeedForm } from './feed-form.tsx';
import { type Feed, keptCountOf } from './feed.ts';

const INTERVAL_MS = 5_000;

export const feedsRoute: Route = {
  pattern: '/feeds',
  title: () => 'Feeds',
  query: {},
  screen: () => <Feeds />,
};

function Feeds() {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isMaking, setIsMaking] = useState(false);
  const isAllowed = capabilities.includes('workspace.manage');
  const resource = useResource<{ feeds: readonly Feed[] }>('/v1/feeds', {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  return (
    <>
      <header className="title">
        <h1>Feeds</h1>
        <p className="lead">
          A consumer reads a feed at its own pace, by a cursor, and needs no address of its own.
        </p>
        <div className="actions">
          <button
            type="button"
            className="main"
            disabled={!isAllowed}
            title={isAllowed ? undefined : notAllowed}
            onClick={() => setIsMaking(true)}
          >
            Make a feed
          </button>
        </div>
      </header>
      <Shown resource={resource}>
        {({ feeds }) => (feeds.length === 0 ? <NoFeed /> : <FeedTable feeds={feeds} />)}
      </Shown>
      {isMaking && (
        <FeedForm
          onClose={() => setIsMaking(false)}
          onSaved={() => {
            setIsMaking(false);
            void resource.reload();
          }}
        />
      )}
    </>
  );
}

function FeedTable({ feeds }: { readonly feeds: readonly Feed[] }) {
  return (
    <table className="list">
      <caption className="unseen">Feeds, by name</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Takes</th>
          <th scope="col" className="right">
            Events kept
          </th>
          <th scope="col">Latest cursor</th>
          <th scope="col">Made</th>
        </tr>
      </thead>
      <tbody>
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
      </tbody>
    </table>
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
