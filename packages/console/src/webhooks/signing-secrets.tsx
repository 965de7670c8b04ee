/** The secrets that a webhook signs with: their last characters, a new one that is shown once, the end of a rotation. */
import { useState } from 'react';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { FormEnd } from '../forms/form-end.tsx';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { visibleText } from '../sentences/visible-text.ts';

interface Secret {
  readonly role: 'current' | 'next';
  readonly hint: string;
  /** Unix seconds. */
  readonly created_at: number;
  readonly promoted_at: number | null;
}

const OVERLAP_SECONDS = 86_400;

export function SigningSecrets({ base }: { readonly base: string }) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const path = `${base}/secrets`;
  const resource = useResource<{ secrets: readonly Secret[] }>(path, { workspaceId });
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
                      path={`${path}/promote`}
                      capability="webhooks.rotate"
                      done="The new secret signs alone"
                      onDone={reload}
                    >
                      Use it alone now
                    </ActionButton>
                    <ActionButton
                      path={`${path}/next`}
                      method="DELETE"
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
      {isAsking && <NewSecret path={path} onClose={() => setIsAsking(false)} onMade={reload} />}
    </section>
  );
}

function NewSecret({
  path,
  onClose,
  onMade,
}: {
  readonly path: string;
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
      const body = { overlap_seconds: OVERLAP_SECONDS };
      const made = await callOnce<{ secret: string }>(path, { method: 'POST', body, workspaceId });
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
