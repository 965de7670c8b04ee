/** One key: its rights, its last use, and the changes that it made. Also a new secret, and its end. */
import { useState } from 'react';
import { get, post, remove } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { FormEnd } from '../forms/form-end.tsx';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { Badge } from '../parts/badge.tsx';
import { LatestChanges } from '../parts/latest-changes.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { type Credential, KEY_TYPES, stateOfKey } from '../sentences/key-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

export const keyRoute: Route = {
  pattern: '/keys/:id',
  title: ({ id }) => `Key ${id}`,
  query: {},
  capability: 'account.manage',
  screen: ({ place: { params } }) => <KeyView key={params['id']} id={params['id'] ?? ''} />,
};

function KeyView({ id }: { readonly id: string }) {
  const { account } = useSession();
  const nowMs = useNow(10_000);
  const resource = useResource(
    get('/v1/accounts/{account_id}/api_credentials/{id}', { path: { account_id: account.id, id } }),
  );
  return (
    <Shown isScreen resource={resource} lines={4}>
      {({ api_credential: key }) => (
        <>
          <header className="title">
            <p className="above">
              <Link to="/keys">Keys</Link>
            </p>
            <div className="row">
              <h1>{visibleText(key.name)}</h1>
              <Badge state={stateOfKey(key, nowMs)} />
            </div>
          </header>
          <section className="card" aria-label="The key">
            <p>
              <UseSentence credential={key} />{' '}
              <Link to="/audit" query={{ credential: String(key.id) }}>
                Changes made with it
              </Link>
            </p>
            <dl className="pairs">
              <Pair name="Type" text={KEY_TYPES[key.type]} />
              <Pair name="Ends in" text={`…${key.token_hint}`} />
              {key.site_id !== null && <Pair name="Site id" text={key.site_id} />}
              {key.environment_id !== null && (
                <Pair name="Workspace" text={String(key.environment_id)} />
              )}
              {key.role !== null && <Pair name="Role" text={key.role} />}
              {key.scopes.length > 0 && <Pair name="Scopes" text={key.scopes.join(', ')} />}
              {isBindable(key) && (
                <>
                  <Pair name="May" text={key.read_only ? 'read only' : 'read and change'} />
                  <Pair name="Addresses" text={key.ip_allowlist.join(', ') || 'any'} />
                </>
              )}
              <div>
                <dt>Made</dt>
                <dd>
                  <Time atMs={Date.parse(key.created_at)} isWhole />
                  <Maker userId={key.created_by_user_id} />
                </dd>
              </div>
              {key.expires_at !== null && (
                <div>
                  <dt>Expires</dt>
                  <dd>
                    <Time atMs={Date.parse(key.expires_at)} isWhole />
                  </dd>
                </div>
              )}
            </dl>
            {stateOfKey(key, nowMs) === 'in force' && (
              <KeyActions credential={key} onChanged={() => void resource.reload()} />
            )}
          </section>
          <LatestChanges title="Changed with it last" credentialId={key.id} />
        </>
      )}
    </Shown>
  );
}

/** Email of the user who made the key; empty for the maker of a token by a token. */
function Maker({ userId }: { readonly userId: number | null }) {
  const { account } = useSession();
  const { data } = useResource(
    userId === null
      ? undefined
      : get('/v1/accounts/{account_id}/all_users', { path: { account_id: account.id } }),
  );
  const maker = data?.users.find(({ id }) => id === userId);
  return maker ? <> by {visibleText(maker.email)}</> : null;
}

/** The keys of intake have no restrictions. */
const isBindable = ({ type }: Credential): boolean => type === 'service_account' || type === 'app';

const Pair = ({ name, text }: { readonly name: string; readonly text: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{visibleText(text)}</dd>
  </div>
);

/** Whether it is still used. */
function UseSentence({ credential }: { readonly credential: Credential }) {
  const { last_used_at: usedAt, last_used_ip: usedIp, revoked_at: revokedAt } = credential;
  const testing =
    credential.testing &&
    ' No identify call was taken with it yet, so it opens identify calls only.';
  if (revokedAt !== null)
    return (
      <>
        Revoked at <Time atMs={Date.parse(revokedAt)} isWhole />.
      </>
    );
  if (usedAt !== null)
    return (
      <>
        Last used at <Time atMs={Date.parse(usedAt)} isWhole />
        {usedIp !== null && (
          <>
            {' '}
            from <code>{usedIp}</code>
          </>
        )}
        .{testing}
      </>
    );
  return <>It was never used.{testing}</>;
}

function KeyActions({
  credential,
  onChanged,
}: {
  readonly credential: Credential;
  readonly onChanged: () => void;
}) {
  const { account } = useSession();
  const path = { account_id: account.id, id: credential.id };
  const [asked, setAsked] = useState<'rotation' | 'revocation'>();
  const [secret, setSecret] = useState<string>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const name = visibleText(credential.name);
  const rotate = (): void =>
    void run(async () => {
      const made = await callOnce(
        post('/v1/accounts/{account_id}/api_credentials/{id}/rotate', { path }),
      );
      setSecret(made.secret);
      onChanged();
    });
  const close = (): void => {
    setAsked(undefined);
    setSecret(undefined);
  };
  return (
    <>
      <div className="actions">
        <button type="button" onClick={() => setAsked('rotation')}>
          New secret …
        </button>
        <button type="button" onClick={() => setAsked('revocation')}>
          Revoke …
        </button>
      </div>
      {asked === 'rotation' && secret === undefined && (
        <Dialog title={`A new secret for ${name}?`} onClose={close}>
          <p>The old one, …{visibleText(credential.token_hint)}, stops working within a second.</p>
          <FormEnd
            problem={problem}
            isRunning={isRunning}
            hasSecret
            what="Make a new secret"
            onWish={rotate}
            onClose={close}
          />
        </Dialog>
      )}
      {secret !== undefined && (
        <SecretsOnce title="The new secret" secrets={[secret]} onStored={close}>
          <p>It is not shown again: store it with the secrets of your programs.</p>
        </SecretsOnce>
      )}
      {asked === 'revocation' && (
        <Dialog title={`Revoke ${name} for ever?`} onClose={close}>
          <p>Programs that use it are refused within a second. It stays in the list.</p>
          <div className="actions">
            <ActionButton
              call={remove('/v1/accounts/{account_id}/api_credentials/{id}', { path })}
              capability="account.manage"
              isMain
              done={`${name} is revoked`}
              onDone={() => {
                close();
                onChanged();
              }}
            >
              Revoke the key
            </ActionButton>
            <button type="button" onClick={close}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
