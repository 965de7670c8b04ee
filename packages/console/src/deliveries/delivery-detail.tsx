/** One delivery: each attempt with the receiver's answer, and the button that sends it again. */
import { post } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { Badge } from '../parts/badge.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, useSetQuery } from '../routing/router.tsx';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { Attempt, Delivery, OfWebhook } from './delivery.ts';
import { RequestView } from './request-view.tsx';

export function DeliveryDetail({
  webhookId,
  delivery,
  attempt: wanted,
  language,
  onChanged,
}: OfWebhook & {
  readonly delivery: Delivery;
  /** The attempt that is shown. Absent: the last. */
  readonly attempt: string | undefined;
  /** Of the sample that verifies its signature. Absent: the samples are closed. */
  readonly language: string | undefined;
  readonly onChanged: () => void;
}) {
  const setQuery = useSetQuery();
  const { isPortal } = useReach();
  const { sequence, attempts } = delivery;
  const shown = attempts.find((each) => String(each.attempt) === wanted) ?? attempts.at(-1);
  return (
    <section className="card" aria-labelledby="delivery-title">
      <div className="row">
        <h3 id="delivery-title">
          Delivery {sequence} <code>{delivery.event_type}</code>
        </h3>
        <Badge state={delivery.state} />
        <span className="grow" />
        <ActionButton
          call={post('/v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/resend', {
            path: { webhook_id: webhookId, sequence },
          })}
          capability="deliveries.retry"
          done={`Delivery ${sequence} is sent again as a new delivery`}
          onDone={onChanged}
        >
          Send again
        </ActionButton>
        <button
          type="button"
          data-close=""
          onClick={() => setQuery({ delivery: undefined, attempt: undefined }, false)}
        >
          Close
        </button>
      </div>
      <p className="facts">
        <Copyable text={delivery.event_id} what="the event_id" />
        {!isPortal && <Link to={`/events/${segment(delivery.event_id)}`}>Trace</Link>}
        {delivery.resend_of !== null && <span>repeats delivery {delivery.resend_of}</span>}
      </p>
      {attempts.length > 0 && (
        <div className="tabs" role="group" aria-label="Attempts">
          {attempts.map((each) => (
            <button
              key={each.attempt}
              type="button"
              aria-pressed={each === shown}
              onClick={() => setQuery({ attempt: String(each.attempt) })}
            >
              {each.attempt}: {each.status ?? each.failure ?? '–'}
            </button>
          ))}
        </div>
      )}
      {shown ? (
        <>
          <RequestView
            webhookId={webhookId}
            sequence={sequence}
            attempt={shown.attempt}
            eventType={delivery.event_type}
            language={language}
          />
          <AttemptView attempt={shown} />
        </>
      ) : (
        <p>It waits for its turn: no attempt was made yet.</p>
      )}
    </section>
  );
}

function AttemptView({ attempt }: { readonly attempt: Attempt }) {
  return (
    <>
      <p className="facts">
        <Time atMs={attempt.started_at * 1000} isWhole />
        <span>{durationText(attempt.duration_ms)}</span>
        <Badge state={attempt.outcome} />
      </p>
      {attempt.failure !== null && attempt.failure !== 'status' && (
        <p className="refusal">
          {attempt.failure.replaceAll('_', ' ')}
          {attempt.failure_message === null ? '' : `: ${visibleText(attempt.failure_message)}`}
        </p>
      )}
      {attempt.response_head === null ? (
        <p className="faint">
          {attempt.status === null ? 'No answer came.' : 'The answer to this attempt is not kept.'}
        </p>
      ) : (
        <>
          <JsonView value={attempt.response_head} label="Status line and headers of the answer" />
          {attempt.response_body ? (
            <JsonView value={attempt.response_body} label="Body of the answer" />
          ) : (
            <p className="faint">The answer has no body.</p>
          )}
        </>
      )}
    </>
  );
}
