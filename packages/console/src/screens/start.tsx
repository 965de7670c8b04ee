/** First steps: a call to paste, and the wait for the first event, which is shown with its trace. */
import { useState } from 'react';
import { useSession } from '../client/session.ts';
import { useTail, WAITS_FOR_TAB } from '../tail/use-tail.ts';
import { personText } from '../tail/tail-line.ts';
import { CallSample, Samples } from '../parts/samples.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route } from '../routing/router.tsx';
import { FIRST_WEBHOOK, LANGUAGES, type Language, snippetOf } from '../sentences/snippets.ts';

const LANGUAGE_NAMES = Object.fromEntries(LANGUAGES.map(({ id, name }) => [id, name]));
const DEMO_WRITE_KEY = 'demo_write_key';

export const startRoute: Route = {
  pattern: '/start',
  title: () => 'Start',
  query: { language: LANGUAGES.map(({ id }) => id) },
  screen: ({ place }) => <Start language={(place.query['language'] as Language) ?? 'curl'} />,
};

function Start({ language }: { readonly language: Language }) {
  const { session, workspaceId, intake_url: intakeUrl } = useSession();
  const writeKey = session.way === 'demo' ? DEMO_WRITE_KEY : '$SLUICE_WRITE_KEY';
  const snippet = snippetOf(language, { intakeUrl, writeKey });
  return (
    <>
      <header className="title">
        <h1>Send your first event</h1>
        <p className="lead">
          Run this on a machine of your code. It needs the write key of this workspace
          {session.way === 'demo'
            ? ', which is filled in for the demo.'
            : ': put it into SLUICE_WRITE_KEY.'}
        </p>
      </header>
      <Samples languages={LANGUAGE_NAMES} language={language} sample={snippet} />
      <FirstEvent key={workspaceId} />
      <CallSample
        label="Then receive each order: a webhook for order_placed"
        method="POST"
        path="/v1/reporting_webhooks"
        body={FIRST_WEBHOOK}
      />
      <ol className="steps">
        <li>
          <Link to="/live">Live</Link> shows every call as it comes in, and why one is refused.
        </li>
        <li>
          <Link to="/webhooks">Webhooks</Link> shows the receivers of each <code>order_placed</code>
          , and why a delivery waits.
        </li>
        <li>
          <a href="/docs">The reference</a> has every call of the API, and{' '}
          <a href="/docs/pages">the documentation</a> has guides.
        </li>
      </ol>
    </>
  );
}

/** Listens until there is an event with an id. */
function FirstEvent() {
  const [openedAtMs] = useState(Date.now);
  const tail = useTail({ isPaused: false });
  const first = tail.lines.findLast(
    (line) => line.kind === 'received' && typeof line.details['event_id'] === 'string',
  );
  if (!first)
    return (
      <section className="card wait" role="status">
        <span className="pulse" aria-hidden="true" />
        <div>
          <h2>Waiting for the first event</h2>
          <p>
            {tail.failure?.message ??
              (tail.isOpen
                ? 'Calls from now on are shown here.'
                : tail.isWaiting
                  ? WAITS_FOR_TAB
                  : 'Connecting …')}{' '}
            <span className="faint">
              Since <Time atMs={openedAtMs} isShort isWhole />.
            </span>
          </p>
        </div>
      </section>
    );
  const eventId = String(first.details['event_id']);
  return (
    <section className="card wait arrived" role="status">
      <span className="tick" aria-hidden="true">
        ✓
      </span>
      <div>
        <h2>Your first event is here</h2>
        <p>
          <b>{first.name ?? String(first.details['type'])}</b> of {personText(first)} at{' '}
          <Time atMs={first.at_ms} isShort />.{' '}
          <Link to={`/events/${segment(eventId)}`}>See its trace</Link>
        </p>
      </div>
    </section>
  );
}
