/** One webhook: the state of its deliveries in a sentence, advice, and the deliveries themselves. */
import { useState } from 'react';
import { StatisticsChart } from '../charts/statistics-chart.tsx';
import { get, post, put, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { DeleteButton } from '../forms/delete-button.tsx';
import { Badge } from '../parts/badge.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { useNow, useZone } from '../parts/time.tsx';
import { linkTo, segment } from '../routing/location.ts';
import { Link, navigate, type Route, useRouting } from '../routing/router.tsx';
import { type LaneState, laneSentence } from '../sentences/lane-sentence.ts';
import { credentialText } from '../sentences/credential-text.ts';
import { sendingText } from '../sentences/sending-text.ts';
import { sampleType, subscriptionText } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { Webhook } from './configuration.ts';
import type { OfWebhook } from '../deliveries/delivery.ts';
import { Deliveries } from '../deliveries/deliveries.tsx';
import { DELIVERY_QUERY } from '../deliveries/delivery-filters.tsx';
import { SELECTED } from '../deliveries/selected-deliveries.tsx';
import { VERIFY_LANGUAGES } from '../deliveries/verify-samples.ts';
import { Replays } from './replays.tsx';
import { PortalForm } from './portal-form.tsx';
import { SigningSecrets } from './signing-secrets.tsx';
import { WebhookForm } from './webhook-form.tsx';

const INTERVAL_MS = 2_000;

export const webhookRoute: Route = {
  pattern: '/webhooks/:id',
  title: ({ id }) => `Webhook ${id}`,
  query: {
    ...DELIVERY_QUERY,
    at: /^[1-9]\d{0,15}$/,
    delivery: /^[1-9]\d{0,15}$/,
    attempt: /^[1-9]\d{0,9}$/,
    selected: SELECTED,
    verify: Object.keys(VERIFY_LANGUAGES),
  },
  screen: ({ place: { params, query } }) => (
    <WebhookView key={params['id']} id={params['id'] ?? ''} query={query} />
  ),
};

function WebhookView({
  id,
  query,
}: {
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { workspaceId, capabilities, notAllowed, isPortal } = useReach();
  const { place } = useRouting();
  const isAllowed = capabilities.includes('webhooks.edit');
  const Form = isPortal ? PortalForm : WebhookForm;
  const [isChanging, setIsChanging] = useState(false);
  const path = { webhook_id: id };
  const webhook = useResource(get('/v1/reporting_webhooks/{webhook_id}', { path }), {
    workspaceId,
  });
  const lane = useResource(get('/v1/reporting_webhooks/{webhook_id}/state', { path }), {
    workspaceId,
    intervalMs: INTERVAL_MS,
  });
  // The state is read again and again: a colleague may have paused it since its settings were read.
  const isPaused = lane.data ? lane.data.state === 'disabled' : webhook.data?.disabled === true;
  const [changeCount, setChangeCount] = useState(0);
  const reload = (): void => {
    void webhook.reload();
    void lane.reload();
    setChangeCount((count) => count + 1);
  };
  return (
    <Shown isScreen resource={webhook} lines={3}>
      {(shown) => (
        <>
          <header className="title">
            <p className="above">
              <Link to={isPortal ? '/' : upOf(shown)}>
                {isPortal || shown.application_id === undefined
                  ? 'Webhooks'
                  : `Application ${visibleText(shown.application_id)}`}
              </Link>
            </p>
            <div className="row">
              <h1>{visibleText(shown.name)}</h1>
              {lane.data && (
                <Badge
                  state={lane.data.state}
                  text={lane.data.state === 'disabled' ? 'paused' : lane.data.state}
                />
              )}
              <span className="grow" />
              <ActionButton
                call={post('/v1/reporting_webhooks/{webhook_id}/test', {
                  path,
                  body: { event_type: sampleType(shown) },
                })}
                capability="deliveries.retry"
                done="A test is on its way"
                onDone={reload}
              >
                Send a test
              </ActionButton>
              <ActionButton
                call={put('/v1/reporting_webhooks/{webhook_id}', {
                  path,
                  body: { disabled: !isPaused },
                })}
                capability="webhooks.edit"
                done={isPaused ? 'Resumed' : 'Paused'}
                onDone={reload}
              >
                {isPaused ? 'Resume' : 'Pause'}
              </ActionButton>
              <button
                type="button"
                disabled={!isAllowed}
                title={isAllowed ? undefined : notAllowed}
                onClick={() => setIsChanging(true)}
              >
                Change …
              </button>
              {!isPortal && (
                <DeleteButton
                  call={remove('/v1/reporting_webhooks/{webhook_id}', { path })}
                  name={shown.name}
                  what={shown.application_id === undefined ? 'the webhook' : 'the endpoint'}
                  onDone={() => navigate(linkTo(upOf(shown), place.query))}
                >
                  <p>Deliveries that wait are not sent any more. All deliveries go with it.</p>
                </DeleteButton>
              )}
            </div>
            <p className="facts">
              <Copyable text={visibleText(shown.endpoint)} what="the endpoint" />
              <span title={shown.events.join(', ')}>{visibleText(subscriptionText(shown))}</span>
              <span>{sendingText(shown)}</span>
              {credentialText(shown) !== '' && <span>{visibleText(credentialText(shown))}</span>}
            </p>
          </header>
          <Shown resource={lane} lines={2}>
            {(state) => <LaneCard state={state} webhookId={id} onChanged={reload} />}
          </Shown>
          {!isPortal && (
            <div className="charts" role="group" aria-label="Attempts over time">
              <StatisticsChart
                metric="delivered"
                what="attempts succeeded"
                span="day"
                webhookId={shown.id}
              />
              <StatisticsChart
                metric="failed"
                what="attempts failed"
                span="day"
                webhookId={shown.id}
                tone="bad"
              />
            </div>
          )}
          <Deliveries webhookId={id} query={query} changeCount={changeCount} />
          <Replays webhookId={id} />
          <SigningSecrets webhookId={id} />
          {isChanging && (
            <Form
              webhook={shown}
              onClose={() => setIsChanging(false)}
              onSaved={() => {
                setIsChanging(false);
                reload();
              }}
            />
          )}
        </>
      )}
    </Shown>
  );
}

const upOf = ({ application_id: id }: Webhook): string =>
  id === undefined ? '/webhooks' : `/applications/${segment(id)}`;

function LaneCard({
  state,
  webhookId,
  onChanged,
}: OfWebhook & {
  readonly state: LaneState;
  readonly onChanged: () => void;
}) {
  const sentence = laneSentence(state, useNow(), useZone());
  // As it was when the question was opened: another delivery may block the others meanwhile, and is not skipped by it.
  const [asked, setAsked] = useState<{ readonly sequence: number; readonly behind: number }>();
  const path = { webhook_id: webhookId };
  const { head } = state;
  const isFailing = state.state === 'failing' && head !== null;
  return (
    <section className={`card lane ${sentence.tone}`} aria-labelledby="lane-title">
      <h2 id="lane-title" className="unseen">
        Progress of its deliveries
      </h2>
      <p className="sentence">{visibleText(sentence.text)}</p>
      {sentence.more !== '' && <p>{sentence.more}</p>}
      {isFailing && (
        <div className="actions">
          <ActionButton
            call={post('/v1/reporting_webhooks/{webhook_id}/probe', { path })}
            capability="deliveries.retry"
            isMain
            done="It is tried now"
            onDone={onChanged}
          >
            Try now
          </ActionButton>
          <button
            type="button"
            onClick={() =>
              setAsked({ sequence: head.sequence, behind: state.unfinished_count - 1 })
            }
          >
            Skip delivery {head.sequence} …
          </button>
          <Link className="button" query={{ delivery: String(head.sequence) }}>
            See its attempts
          </Link>
        </div>
      )}
      {asked && (
        <Dialog
          title={`Skip delivery ${asked.sequence} for ever?`}
          onClose={() => setAsked(undefined)}
        >
          <p>
            It will not be sent again by itself. {asked.behind} that wait behind it go on, in order.
            It can be resent later.
          </p>
          <div className="actions">
            <ActionButton
              call={post('/v1/reporting_webhooks/{webhook_id}/skip_head', {
                path,
                body: { sequence: asked.sequence },
              })}
              capability="deliveries.skip"
              isMain
              done={`Delivery ${asked.sequence} is skipped`}
              onDone={() => {
                setAsked(undefined);
                onChanged();
              }}
            >
              {`Skip delivery ${asked.sequence} for ever`}
            </ActionButton>
            <button type="button" onClick={() => setAsked(undefined)}>
              Keep it
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}
