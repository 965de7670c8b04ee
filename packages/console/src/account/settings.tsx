/** The user's second factor, open sessions, programs and keyboard; for an account_admin, two factors of the account. */
import { type FormEvent, useState } from 'react';
import { get, post } from '../client/calls.ts';
import { own, request } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { type SignInWay, useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { announce } from '../parts/announcer.tsx';
import { ActionButton } from '../forms/action-button.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { KeySwitch } from '../parts/palette.tsx';
import { formText } from '../forms/form-text.ts';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useWork } from '../forms/use-work.ts';
import type { Route } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { Programs } from './programs.tsx';
import { FactorField, RecoveryCodes, SetUp } from './second-factor.tsx';

interface OpenSession {
  readonly id: number;
  readonly way: SignInWay;
  readonly is_current: boolean;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly ip_addr: string;
  readonly user_agent: string | null;
}

const WAYS: Readonly<Record<SignInWay, string>> = {
  code: 'mailed code',
  demo: 'demo',
  token: 'token',
  provider: 'identity provider',
};

export const settingsRoute: Route = {
  pattern: '/settings',
  title: () => 'Settings',
  query: {},
  screen: () => <Settings />,
};

function Settings() {
  const { user, account, session, capabilities } = useSession();
  const isUser = session.way === 'code' || session.way === 'provider';
  return (
    <>
      <header className="title">
        <h1>Settings</h1>
        <p className="lead">
          {visibleText(user.email)}, {user.role} of {visibleText(account.name)}.
        </p>
      </header>
      {isUser && <SecondFactor />}
      {capabilities.includes('account.manage') && <AccountSecurity />}
      <Sessions />
      {isUser && <Programs />}
      <section className="card" aria-labelledby="keyboard">
        <h2 id="keyboard">Keyboard</h2>
        <p>Keys of one letter move in the page, in this browser. Ctrl K works always.</p>
        <div className="actions">
          <KeySwitch />
        </div>
      </section>
    </>
  );
}

interface FactorState {
  readonly is_enabled: boolean;
  readonly recovery_codes_left: number;
}

function SecondFactor() {
  const resource = useResource(own<FactorState>('get', '/console/second_factor'));
  const [asked, setAsked] = useState<'setup' | 'codes' | 'removal'>();
  const close = (): void => {
    setAsked(undefined);
    void resource.reload();
  };
  return (
    <section className="card" aria-labelledby="second-factor">
      <h2 id="second-factor">Second factor</h2>
      <Shown resource={resource} lines={2}>
        {({ is_enabled: isEnabled, recovery_codes_left: codesLeft }) =>
          isEnabled ? (
            <>
              <p>
                On: after the mailed code you give a code of your app. {codesLeft} of 10 recovery
                codes are left.
              </p>
              <div className="actions">
                <button type="button" onClick={() => setAsked('codes')}>
                  New recovery codes
                </button>
                <button type="button" onClick={() => setAsked('removal')}>
                  Remove
                </button>
              </div>
            </>
          ) : (
            <>
              <p>Off: a mailed code is enough to sign in as you.</p>
              <div className="actions">
                <button type="button" className="main" onClick={() => setAsked('setup')}>
                  Set up a second factor
                </button>
              </div>
            </>
          )
        }
      </Shown>
      {asked === 'setup' && (
        <Dialog title="Set up a second factor" onClose={close}>
          <SetUp onDone={close} />
        </Dialog>
      )}
      {(asked === 'codes' || asked === 'removal') && <GiveAppCode what={asked} onClose={close} />}
    </section>
  );
}

/**
 * Asks for a code of the factor before a change of it. Only the removal also takes a recovery code: a user who has lost
 * the phone removes the factor and sets up another.
 */
function GiveAppCode({
  what,
  onClose,
}: {
  readonly what: 'codes' | 'removal';
  readonly onClose: () => void;
}) {
  const [codes, setCodes] = useState<readonly string[]>();
  const [isRecovery, setIsRecovery] = useState(false);
  const { isRunning, problem, run } = useWork();
  const give = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = formText(event.currentTarget, 'factor');
    const body = isRecovery ? { recovery_code: text } : { code: text };
    void run(async () => {
      if (what === 'removal') {
        await request(own('delete', '/console/second_factor', body));
        announce('The second factor is removed');
        onClose();
        return;
      }
      const path = '/console/second_factor/recovery_codes';
      const answer = await request(own<{ recovery_codes: string[] }>('post', path, body));
      setCodes(answer.recovery_codes);
    });
  };
  if (codes) return <RecoveryCodes codes={codes} onStored={onClose} />;
  return (
    <Dialog
      title={what === 'codes' ? 'New recovery codes' : 'Remove the second factor'}
      onClose={onClose}
    >
      <form onSubmit={give} key={String(isRecovery)}>
        {what === 'codes' && <p>The ones that you have are no good any more afterwards.</p>}
        <FactorField isRecovery={isRecovery} />
        {what === 'removal' && (
          <button type="button" className="plain" onClick={() => setIsRecovery(!isRecovery)}>
            {isRecovery ? 'Use the app' : 'I do not have the app'}
          </button>
        )}
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          hasSecret={what === 'codes'}
          what={what === 'codes' ? 'Make ten new ones' : 'Remove it'}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

function AccountSecurity() {
  const { account } = useSession();
  const path = { account_id: account.id };
  const resource = useResource(get('/v1/accounts/{account_id}', { path }));
  return (
    <section className="card" aria-labelledby="account-security">
      <h2 id="account-security">Two factors in this account</h2>
      <Shown resource={resource} lines={2}>
        {({ account: { two_factor_required: isRequired } }) => (
          <>
            <p>
              {isRequired
                ? 'Required: a user who signs in without a second factor sets one up first, and no session is opened by a token.'
                : 'Not required. Once it is, sessions with one factor are over, and tokens open no sessions; programs go on.'}
            </p>
            <div className="actions">
              <ActionButton
                call={post('/v1/accounts/{account_id}/2fa_required/{action}', {
                  path: { ...path, action: isRequired ? 'disable' : 'enable' },
                })}
                capability="account.manage"
                done={isRequired ? 'Two factors are not required' : 'Two factors are required'}
                onDone={() => void resource.reload()}
              >
                {isRequired ? 'Require one factor' : 'Require two factors'}
              </ActionButton>
            </div>
          </>
        )}
      </Shown>
    </section>
  );
}

function Sessions() {
  const resource = useResource(
    own<{ sessions: readonly OpenSession[] }>('get', '/console/sessions'),
    { intervalMs: 30_000 },
  );
  return (
    <section className="stack" aria-labelledby="sessions">
      <h2 id="sessions">Open sessions</h2>
      <Shown resource={resource} lines={3}>
        {({ sessions }) => (
          <ListTable
            caption="Your open sessions"
            heads={[
              'Signed in',
              'By',
              'Last used',
              'Address',
              'Browser',
              { text: 'End it', form: 'unseen' },
            ]}
          >
            {sessions.map((each) => (
              <tr key={each.id}>
                <th scope="row">
                  <Time atMs={Date.parse(each.created_at)} isWhole />
                </th>
                <td>{WAYS[each.way]}</td>
                <td>
                  {each.is_current ? (
                    'this one'
                  ) : (
                    <Time atMs={Date.parse(each.last_seen_at)} isWhole />
                  )}
                </td>
                <td>
                  <code>{each.ip_addr}</code>
                </td>
                <td className="clip">{visibleText(each.user_agent ?? '')}</td>
                <td>
                  {!each.is_current && (
                    <ActionButton
                      call={own('delete', `/console/sessions/${each.id}`)}
                      done="The session is ended"
                      onDone={() => void resource.reload()}
                    >
                      End
                    </ActionButton>
                  )}
                </td>
              </tr>
            ))}
          </ListTable>
        )}
      </Shown>
    </section>
  );
}
