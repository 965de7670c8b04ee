/** The identity provider of the account, by which its users sign in; for an account_admin. */
import { type FormEvent, useState } from 'react';
import { get, put, remove } from '../client/calls.ts';
import type { BodyOf, Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { Shown } from '../parts/states.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { WorkspaceFields } from './user-detail.tsx';

const PROVIDER = '/v1/accounts/{account_id}/identity_provider';

type ProviderState = Described<'IdentityProviderResponse'>;
type Provider = NonNullable<ProviderState['identity_provider']>;
type NewUserRole = NonNullable<Provider['new_user_role']>;

export function IdentityProviderCard() {
  const { account } = useSession();
  const path = { account_id: account.id };
  const resource = useResource(get(PROVIDER, { path }));
  const [isSetting, setIsSetting] = useState(false);
  return (
    <section className="card" aria-labelledby="identity-provider">
      <h2 id="identity-provider">Identity provider</h2>
      <Shown resource={resource} lines={3}>
        {(state) => (
          <>
            {state.identity_provider ? (
              <Summary provider={state.identity_provider} />
            ) : (
              <p>
                Without a provider, users sign in with a mailed code. With one, they sign in as
                everywhere in your company, by OpenID Connect.
              </p>
            )}
            <div className="actions">
              <button type="button" onClick={() => setIsSetting(true)}>
                {state.identity_provider ? 'Change the provider' : 'Set up a provider'}
              </button>
              {state.identity_provider && (
                <ActionButton
                  call={remove(PROVIDER, { path })}
                  capability="account.manage"
                  done="The identity provider is removed"
                  onDone={() => void resource.reload()}
                >
                  Remove the provider
                </ActionButton>
              )}
            </div>
            {isSetting && (
              <SetProvider
                state={state}
                onClose={() => setIsSetting(false)}
                onSaved={() => {
                  setIsSetting(false);
                  void resource.reload();
                }}
              />
            )}
          </>
        )}
      </Shown>
    </section>
  );
}

function Summary({ provider }: { readonly provider: Provider }) {
  return (
    <>
      <p>
        Addresses of <b>{provider.email_domains.map(visibleText).join(', ')}</b> sign in with{' '}
        <b>{visibleText(provider.issuer)}</b>.{' '}
        {provider.required
          ? 'It is required: no mailed code and no token opens a session.'
          : 'A mailed code opens a session too.'}{' '}
        {provider.counts_as_two_factors ? 'It counts as two factors.' : 'It counts as one factor.'}{' '}
        {provider.new_user_role === null
          ? 'A person who is not a user is refused.'
          : `A person who is not a user becomes a ${provider.new_user_role}.`}
      </p>
      {!provider.has_client_secret && (
        <p className="refusal">The client secret is lost: set it again.</p>
      )}
      {provider.admin_signed_in_at === null && (
        <p className="faint">
          No account_admin has signed in by it yet. Once one has, it can be required.
        </p>
      )}
    </>
  );
}

function SetProvider({
  state,
  onClose,
  onSaved,
}: {
  readonly state: ProviderState;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { account, workspaces } = useSession();
  const provider = state.identity_provider;
  const [role, setRole] = useState<NewUserRole | ''>(provider?.new_user_role ?? '');
  const [environmentIds, setEnvironmentIds] = useState<readonly number[]>(
    provider?.new_user_environment_ids ?? workspaces.map(({ id }) => id),
  );
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const secret = formText(form, 'client-secret');
    const body: BodyOf<'put', typeof PROVIDER> = {
      issuer: formText(form, 'issuer'),
      client_id: formText(form, 'client-id'),
      ...(secret !== '' && { client_secret: secret }),
      email_domains: formText(form, 'domains')
        .split(/[\s,]+/)
        .filter((each) => each !== ''),
      required: formText(form, 'required') === 'on',
      counts_as_two_factors: formText(form, 'two-factors') === 'on',
      new_user_role: role === '' ? null : role,
      new_user_environment_ids: role === '' ? [] : environmentIds,
    };
    void run(async () => {
      await callOnce(put(PROVIDER, { path: { account_id: account.id }, body }));
      announce('The identity provider is set');
      onSaved();
    });
  };
  return (
    <Dialog title="Identity provider" onClose={onClose}>
      <form onSubmit={save}>
        <p>
          Register a web application at your provider, with this redirect URI:{' '}
          <Copyable text={state.redirect_uri} what="the redirect URI" />
        </p>
        <label htmlFor="issuer">Issuer</label>
        <input
          id="issuer"
          name="issuer"
          type="url"
          placeholder="https://login.example.com"
          defaultValue={provider?.issuer ?? ''}
          autoComplete="off"
          required
          {...FOCUSED}
        />
        <label htmlFor="client-id">Client ID</label>
        <input
          id="client-id"
          name="client-id"
          defaultValue={provider?.client_id ?? ''}
          autoComplete="off"
          spellCheck={false}
          required
        />
        <label htmlFor="client-secret">Client secret</label>
        <input
          id="client-secret"
          name="client-secret"
          type="password"
          placeholder={provider ? 'stays as it is' : ''}
          autoComplete="off"
          required={!provider}
        />
        <label htmlFor="domains">Email domains, commas between</label>
        <input
          id="domains"
          name="domains"
          defaultValue={provider?.email_domains.join(', ') ?? ''}
          placeholder="example.com"
          autoComplete="off"
          spellCheck={false}
          required
        />
        <p className="faint">
          Each must be yours: set its TXT record <code>{state.domain_record.name}</code> to{' '}
          <Copyable text={state.domain_record.text} what="the text of the record" />
        </p>
        <label>
          <input
            type="checkbox"
            name="two-factors"
            defaultChecked={provider?.counts_as_two_factors ?? false}
          />{' '}
          It counts as two factors: the provider asks for a second one itself
        </label>
        <label>
          <input type="checkbox" name="required" defaultChecked={provider?.required ?? false} /> It
          is required: no mailed code and no token opens a session
        </label>
        <label htmlFor="new-user-role">A person who is not a user yet</label>
        <select
          id="new-user-role"
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as NewUserRole | '')}
        >
          <option value="">is refused</option>
          <option value="member">becomes a member</option>
          <option value="billing_admin">becomes a billing_admin</option>
        </select>
        {role !== '' && <WorkspaceFields value={environmentIds} onChange={setEnvironmentIds} />}
        <FormEnd problem={problem} isRunning={isRunning} what="Save" onClose={onClose} />
      </form>
    </Dialog>
  );
}
