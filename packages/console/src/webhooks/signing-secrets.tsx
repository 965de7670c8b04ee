/** The secrets that a webhook signs with: their last characters, a new one that is shown once, the end of a rotation. */
import { useState } from 'react';
import { get, post, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import type { OfWebhook } from '../deliveries/delivery.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { FormEnd } from '../forms/form-end.tsx';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { visibleText } from '../sentences/visible-text.ts';

const OVERLAP_SECONDS = 86_400;

export function SigningSecrets({ webhookId }: OfWebhook) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const path = { webhook_id: webhookId };
  const resource = useResource(get('/v1/reporting_webhooks/{webhook_id}/secrets', { path }), {
    workspaceId,
  });
  const isAllowed = capabilities.includes('webhooks.rotate');
  const reload = (): void => void resource.reload();
  return (
    <section className="stack" aria-labelledby="secrets">
      <div className="row">
        <h2 id="secrets">Secrets</h2>
        <span className="grow" />
        <button
          type="button"
          disabled={!isAllowed}
          title={isAllowed ? undefined : notAllowed}
          onClick={() => setIsAsking(true)}
        >
          New secret …
        </button>
      </div>
      <Shown resource={resource} lines={1}>
        {({ secrets }) => (
          <ul>
            {secrets.map((secret) => (
              <li key={secret.role} className="row">
                <span>
                  {secret.role === 'current' ? 'Signs now' : 'Signs beside it'}, ends in{' '}
                  <code>{visibleText(secret.hint)}</code>, made{' '}
                  <Time atMs={secret.created_at * 1000} isWhole />
                  {secret.promoted_at !== null && (
                    <>
                      , alone from <Time atMs={secret.promoted_at * 1000} isWhole />
                    </>
                  )}
                </span>
                {secret.role === 'next' && (
                  <>
                    <ActionButton
                      call={post('/v1/reporting_webhooks/{webhook_id}/secrets/promote', { path })}
                      capability="webhooks.rotate"
                      done="The new secret signs alone"
                      onDone={reload}
                    >
                      Use it alone now
                    </ActionButton>
                    <ActionButton
                      call={remove('/v1/reporting_webhooks/{webhook_id}/secrets/next', { path })}
                      capability="webhooks.rotate"
                      done="The new secret is taken back"
                      onDone={reload}
                    >
                      Take it back
                    </ActionButton>
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
      </Shown>
      {isAsking && (
        <NewSecret webhookId={webhookId} onClose={() => setIsAsking(false)} onMade={reload} />
      )}
    </section>
  );
}

function NewSecret({
  webhookId,
  onClose,
  onMade,
}: OfWebhook & {
  readonly onClose: () => void;
  readonly onMade: () => void;
}) {
  const { workspaceId } = useReach();
  // In the state of this dialog alone, which is gone when it closes.
  const [secret, setSecret] = useState<string>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const make = (): void =>
    void run(async () => {
      const made = await callOnce(
        post('/v1/reporting_webhooks/{webhook_id}/secrets', {
          path: { webhook_id: webhookId },
          body: { overlap_seconds: OVERLAP_SECONDS },
        }),
        { workspaceId },
      );
      setSecret(made.secret);
      onMade();
    });
  if (secret !== undefined)
    return (
      <SecretsOnce title="The new secret" secrets={[secret]} onStored={onClose}>
        <p>It is not shown again: store it with the secrets of your receiver.</p>
      </SecretsOnce>
    );
  return (
    <Dialog title="Make a new secret?" onClose={onClose}>
      <p>
        For a day both sign: <code>x-svc-signature</code> stays with the old one,{' '}
        <code>x-svc-signature-next</code> has the new one’s. Then the new one signs alone.
      </p>
      <FormEnd
        problem={problem}
        isRunning={isRunning}
        hasSecret
        what="Make the secret"
        onWish={make}
        onClose={onClose}
      />
    </Dialog>
  );
}
