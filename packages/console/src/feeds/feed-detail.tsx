/** One feed: its events and filters, its two ends, and a page of events as a consumer reads them. */
import { useState } from 'react';
import { get, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { DeleteButton } from '../forms/delete-button.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { linkTo } from '../routing/location.ts';
import { Link, navigate, type Route, useRouting } from '../routing/router.tsx';
import { subscriptionText } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { FeedForm } from './feed-form.tsx';
import { FeedPage } from './feed-page.tsx';
import { CURSOR, type Feed, keptCountOf } from './feed.ts';

const INTERVAL_MS = 5_000;

export const feedRoute: Route = {
  pattern: '/feeds/:name',
  title: ({ name = '' }) => `Feed ${visibleText(name)}`,
  query: { cursor: CURSOR, event: CURSOR },
  screen: ({ place: { params, query } }) => (
    <FeedView key={params['name']} name={params['name'] ?? ''} query={query} />
  ),
};

function FeedView({
  name,
  query,
}: {
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { workspaceId } = useReach();
  const resource = useResource(get('/v1/feeds'), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/feeds">Feeds</Link>
        </p>
        <h1>{visibleText(name)}</h1>
      </header>
      <Shown resource={resource} lines={4}>
        {({ feeds }) => {
          const feed = feeds.find((each) => each.name === name);
          return feed ? (
            <OneFeed feed={feed} query={query} onChanged={() => void resource.reload()} />
          ) : (
            <Empty title="There is no such feed" />
          );
        }}
      </Shown>
    </>
  );
}

function OneFeed({
  feed,
  query,
  onChanged,
}: {
  readonly feed: Feed;
  readonly query: Readonly<Record<string, string>>;
  readonly onChanged: () => void;
}) {
  const { capabilities, notAllowed } = useReach();
  const { place } = useRouting();
  const [isChanging, setIsChanging] = useState(false);
  const isAllowed = capabilities.includes('workspace.manage');
  const { cursor, event } = query;
  return (
    <>
      <div className="actions">
        <button
          type="button"
          disabled={!isAllowed}
          title={isAllowed ? undefined : notAllowed}
          onClick={() => setIsChanging(true)}
        >
          Change …
        </button>
        <DeleteButton
          call={remove('/v1/feeds/{name}', { path: { name: feed.name } })}
          name={feed.name}
          what="the feed"
          onDone={() => navigate(linkTo('/feeds', place.query))}
        >
          <p>Its events go with it. Cursors of its readers are over.</p>
        </DeleteButton>
      </div>
      <dl className="pairs">
        <div>
          <dt>Takes</dt>
          <dd title={feed.events.join(', ')}>{visibleText(subscriptionText(feed))}</dd>
        </div>
        <div>
          <dt>Events kept</dt>
          <dd>{keptCountOf(feed)}</dd>
        </div>
        <div>
          <dt>Oldest cursor, before the first of them</dt>
          <dd>
            <Copyable text={feed.oldest} what="the oldest cursor" />
          </dd>
        </div>
        <div>
          <dt>Latest cursor, of the last</dt>
          <dd>
            <Copyable text={feed.latest} what="the latest cursor" />
          </dd>
        </div>
        <div>
          <dt>Made</dt>
          <dd>
            <Time atMs={Date.parse(feed.created_at)} isWhole />
          </dd>
        </div>
      </dl>
      <FeedPage name={feed.name} cursor={cursor} event={event} />
      <CallSample
        label="A page by a call; the answer has the cursor to go on with"
        path={`/v1/feeds/${feed.name}?cursor=${cursor ?? feed.oldest}&wait=20`}
      />
      {isChanging && (
        <FeedForm
          feed={feed}
          onClose={() => setIsChanging(false)}
          onSaved={() => {
            setIsChanging(false);
            onChanged();
          }}
        />
      )}
    </>
  );
}
