/** Sign-in: one click in the demo, else an email and the code that is mailed to it, the identity provider of its domain, or a token of the account. */
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { own, request } from '../client/request.ts';
import { Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { FOCUSED } from '../parts/focused.ts';
import { visibleText } from '../sentences/visible-text.ts';

export interface SignInProps {
  readonly hasDemo: boolean;
  /** A session was there and is over. */
  readonly isOver: boolean;
  /** Reason why the sign-in by an identity provider, from which the browser came back, failed. */
  readonly refusal: string | undefined;
  readonly onSignedIn: () => void;
}

/** Of an email domain. */
interface Provider {
  /** Its host. */
  readonly name: string;
  readonly required: boolean;
}

/** An account that invited the person. */
interface InvitingAccount {
  readonly id: number;
  readonly name: string;
}

export function SignIn({ hasDemo, isOver, refusal, onSignedIn }: SignInProps) {
  const [email, setEmail] = useState('');
  const [step, setStep] = useState<'email' | 'provider' | 'code' | 'account' | 'token'>('email');
  const [provider, setProvider] = useState<Provider>();
  const [code, setCode] = useState('');
  const [accounts, setAccounts] = useState<readonly InvitingAccount[]>([]);
  const { isRunning, problem, run } = useWork();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Sluice';
    heading.current?.focus();
  }, []);

  const signIn = (body: object) => async (): Promise<void> => {
    const answer = await request(
      own<{ accounts: readonly InvitingAccount[] } | undefined>('post', '/console/session', body),
    );
    if (!answer) return onSignedIn();
    setAccounts(answer.accounts);
    setStep('account');
  };
  const askForCode = async (): Promise<void> => {
    await request(own('post', '/console/session/code', { email }));
    setStep('code');
  };
  const giveEmail = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const answer = await request(
        own<{ provider: Provider | null }>('post', '/console/session/provider', { email }),
      );
      if (!answer.provider) return askForCode();
      setProvider(answer.provider);
      setStep('provider');
    });
  };
  const goToProvider = async (): Promise<void> => {
    const body = { email, return_path: `${location.pathname}${location.search}` };
    const { url } = await request(
      own<{ url: string }>('post', '/console/session/provider/begin', body),
    );
    location.assign(url);
  };
  const giveCode = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = formText(event.currentTarget, 'code');
    setCode(given);
    void run(signIn({ email, code: given }));
  };
  const giveToken = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    void run(signIn({ token: formText(event.currentTarget, 'token') }));
  };

  return (
    <main className="sign-in">
      <div className="card">
        <p className="brand">
          <Mark /> Sluice
        </p>
        <h1 ref={heading} tabIndex={-1}>
          Sign in
        </h1>
        {isOver && <p role="status">Your session is over.</p>}
        <Refusal problem={step === 'email' ? refusal : undefined} />
        {hasDemo && (
          <>
            <button
              type="button"
              className="main wide"
              disabled={isRunning}
              onClick={() => void run(signIn({ demo: true }))}
            >
              Open the demo
            </button>
            <p className="or">or with an email of your account</p>
          </>
        )}
        {step === 'code' && (
          <form onSubmit={giveCode} key="code">
            <p>
              If <b>{email}</b> is a user, a code is on its way. It is good for 10 minutes.
            </p>
            <label htmlFor="code">Code of six digits</label>
            <input
              id="code"
              name="code"
              inputMode="numeric"
              autoComplete="one-time-code"
              pattern="\s*([0-9]{6}|[0-9]{16})\s*"
              required
              {...FOCUSED}
            />
            <button type="submit" className={hasDemo ? 'wide' : 'main wide'} disabled={isRunning}>
              Sign in
            </button>
            <button type="button" className="plain" onClick={() => setStep('email')}>
              Use another email
            </button>
          </form>
        )}
        {step === 'account' && (
          <div className="stack">
            <p>
              Several accounts have invited <b>{email}</b>. Choose the account that you know.
            </p>
            {accounts.map(({ id, name }) => (
              <button
                key={id}
                type="button"
                className="wide"
                disabled={isRunning}
                onClick={() => void run(signIn({ email, code, account_id: id }))}
              >
                {`${visibleText(name)}, account ${id}`}
              </button>
            ))}
            <button type="button" className="plain" onClick={() => setStep('email')}>
              Use another email
            </button>
          </div>
        )}
        {step === 'token' && (
          <form onSubmit={giveToken} key="token">
            <p>The session reaches as far as the token, and ends with it. The token is not kept.</p>
            <label htmlFor="token">Token of a service account</label>
            <input
              id="token"
              name="token"
              type="password"
              autoComplete="off"
              placeholder="sa_…"
              required
              {...FOCUSED}
            />
            <button type="submit" className={hasDemo ? 'wide' : 'main wide'} disabled={isRunning}>
              Sign in
            </button>
            <button type="button" className="plain" onClick={() => setStep('email')}>
              Use an email
            </button>
          </form>
        )}
        {step === 'provider' && provider && (
          <ProviderStep
            email={email}
            provider={provider}
            canUseCode={!provider.required || refusal !== undefined}
            isRunning={isRunning}
            isMain={!hasDemo}
            onProvider={() => void run(goToProvider)}
            onCode={() => void run(askForCode)}
            onOtherEmail={() => setStep('email')}
          />
        )}
        {step === 'email' && (
          <form onSubmit={giveEmail} key="email">
            <label htmlFor="email">Email</label>
            <input
              id="email"
              type="email"
              autoComplete="email"
              required
              value={email}
              onInput={(event) => setEmail(event.currentTarget.value)}
            />
            <button type="submit" className={hasDemo ? 'wide' : 'main wide'} disabled={isRunning}>
              Go on
            </button>
            <button type="button" className="plain" onClick={() => setStep('token')}>
              Use a token
            </button>
          </form>
        )}
        <Refusal problem={problem} />
      </div>
    </main>
  );
}

function ProviderStep({
  email,
  provider,
  canUseCode,
  isRunning,
  isMain,
  onProvider,
  onCode,
  onOtherEmail,
}: {
  readonly email: string;
  readonly provider: Provider;
  readonly canUseCode: boolean;
  readonly isRunning: boolean;
  readonly isMain: boolean;
  readonly onProvider: () => void;
  readonly onCode: () => void;
  readonly onOtherEmail: () => void;
}) {
  return (
    <div className="stack">
      <p>
        {provider.required
          ? 'The account of this domain is signed in to by its identity provider alone: '
          : 'This domain has an identity provider: '}
        <b>{email}</b>
      </p>
      <button
        type="button"
        className={isMain ? 'main wide' : 'wide'}
        disabled={isRunning}
        onClick={onProvider}
        {...FOCUSED}
      >
        {`Sign in with ${visibleText(provider.name)}`}
      </button>
      {canUseCode && (
        <button type="button" className="wide" disabled={isRunning} onClick={onCode}>
          Mail me a code
        </button>
      )}
      <button type="button" className="plain" onClick={onOtherEmail}>
        Use another email
      </button>
    </div>
  );
}

/** Three gates of a sluice. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <rect x="1" y="3" width="4" height="14" rx="1.5" />
      <rect x="8" y="7" width="4" height="10" rx="1.5" />
      <rect x="15" y="11" width="4" height="6" rx="1.5" />
    </svg>
  );
}
