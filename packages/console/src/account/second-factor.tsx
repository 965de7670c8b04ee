/** The second factor: given at the sign-in, and set up, by an authenticator app. */
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { own, request } from '../client/request.ts';
import { LateSecret, Refusal } from '../forms/form-end.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { useHeldDialog } from '../parts/dialog.tsx';
import { formText } from '../forms/form-text.ts';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useWork } from '../forms/use-work.ts';
import { FOCUSED } from '../parts/focused.ts';
import { QrCode } from '../charts/qr-code.tsx';
import { Mark } from './sign-in.tsx';

/** The step between a mailed code and the console. */
export function SecondFactorStep({
  standing,
  onDone,
  onSignOut,
}: {
  readonly standing: 'needs_code' | 'needs_setup';
  readonly onDone: () => void;
  readonly onSignOut: () => void;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = 'Second factor · Sluice';
    heading.current?.focus();
  }, []);
  return (
    <main className="sign-in">
      <div className="card">
        <p className="brand">
          <Mark /> Sluice
        </p>
        <h1 ref={heading} tabIndex={-1}>
          {standing === 'needs_code' ? 'Second factor' : 'Set up a second factor'}
        </h1>
        {standing === 'needs_code' ? (
          <GiveCode onDone={onDone} />
        ) : (
          <>
            <p>Your account requires two factors of everybody who signs in.</p>
            <SetUp onDone={onDone} />
          </>
        )}
        <button type="button" className="plain" onClick={onSignOut}>
          Sign in as somebody else
        </button>
      </div>
    </main>
  );
}

function GiveCode({ onDone }: { readonly onDone: () => void }) {
  const [isRecovery, setIsRecovery] = useState(false);
  const { isRunning, problem, run } = useWork();
  const give = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = formText(event.currentTarget, 'factor');
    const body = isRecovery ? { recovery_code: text } : { code: text };
    void run(async () => {
      await request(own('post', '/console/session/second_factor', body));
      onDone();
    });
  };
  return (
    <form onSubmit={give} key={String(isRecovery)}>
      <FactorField isRecovery={isRecovery} />
      <button type="submit" className="main wide" disabled={isRunning}>
        Go on
      </button>
      <button type="button" className="plain" onClick={() => setIsRecovery(!isRecovery)}>
        {isRecovery ? 'Use the app' : 'I do not have the app'}
      </button>
      <Refusal problem={problem} />
    </form>
  );
}

/** A code of the app, or one of the recovery codes in its place. */
export function FactorField({ isRecovery }: { readonly isRecovery: boolean }) {
  return (
    <>
      <label htmlFor="factor">
        {isRecovery ? 'One of your recovery codes' : 'Code of your authenticator app'}
      </label>
      <input
        id="factor"
        name="factor"
        required
        {...FOCUSED}
        spellCheck={false}
        {...(isRecovery
          ? { autoComplete: 'off' }
          : { inputMode: 'numeric', autoComplete: 'one-time-code', pattern: '\\s*[0-9]{6}\\s*' })}
      />
    </>
  );
}

interface Setup {
  /** Base32. */
  readonly secret: string;
  /** Opens the app on a phone. */
  readonly uri: string;
}

/** From the secret to the recovery codes; `onDone` once these are stored. */
export function SetUp({ onDone }: { readonly onDone: () => void }) {
  const [setup, setSetup] = useState<Setup>();
  const [codes, setCodes] = useState<readonly string[]>();
  const { isRunning, problem, run } = useWork();
  const isHeld = useHeldDialog(isRunning);
  const begin = (): void =>
    void run(async () =>
      setSetup(await request(own<Setup>('post', '/console/second_factor/setup'))),
    );
  const confirm = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const body = { code: formText(event.currentTarget, 'code') };
    void run(async () => {
      const answer = await request(
        own<{ recovery_codes: string[] }>('post', '/console/second_factor', body),
      );
      setCodes(answer.recovery_codes);
    });
  };
  return (
    <>
      {setup ? (
        <form onSubmit={confirm}>
          <p>
            Scan this with an authenticator app, type the secret into it, or{' '}
            <a href={setup.uri}>open the app</a> on this device. Then give the code that it shows.
          </p>
          <QrCode text={setup.uri} label="QR code of the secret" />
          <p className="copyable">
            <code data-secret="">{(setup.secret.match(/.{4}/g) ?? []).join(' ')}</code>
            <CopyButton text={setup.secret} label="Copy the secret">
              Copy
            </CopyButton>
          </p>
          <label htmlFor="setup-code">Code of six digits</label>
          <input
            id="setup-code"
            name="code"
            inputMode="numeric"
            autoComplete="one-time-code"
            pattern="\s*[0-9]{6}\s*"
            required
            {...FOCUSED}
          />
          <button type="submit" className="main wide" disabled={isRunning}>
            Confirm
          </button>
        </form>
      ) : (
        <button type="button" className="main wide" disabled={isRunning} onClick={begin}>
          Show the secret for my app
        </button>
      )}
      <Refusal problem={problem} />
      {isRunning && !isHeld && <LateSecret />}
      {codes && <RecoveryCodes codes={codes} onStored={onDone} />}
    </>
  );
}

export function RecoveryCodes({
  codes,
  onStored,
}: {
  readonly codes: readonly string[];
  readonly onStored: () => void;
}) {
  return (
    <SecretsOnce title="Recovery codes" secrets={codes} onStored={onStored}>
      <p>
        Each opens the console once, in place of a code of the app. They are not shown again: print
        them, or keep them with your passwords.
      </p>
    </SecretsOnce>
  );
}
