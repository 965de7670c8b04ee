/** Lets a program in that waits with a code: `sluice login`. The user types the code; no link carries it. */
import { type FormEvent, useState } from 'react';
import { own, request } from '../client/request.ts';
import { useSession } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { Time } from '../parts/time.tsx';
import type { Route } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

export const deviceRoute: Route = {
  pattern: '/device',
  title: () => 'Let a program in',
  query: {},
  screen: DeviceScreen,
};

interface Device {
  readonly client_name: string;
  readonly ip_addr: string | null;
  readonly is_same_network: boolean;
  readonly started_at: string;
}

function DeviceScreen() {
  const { session } = useSession();
  const [code, setCode] = useState('');
  const [device, setDevice] = useState<Device>();
  const [ending, setEnding] = useState<string>();
  const { isRunning, problem, run } = useWork();
  const isUser = session.way === 'code' || session.way === 'provider';

  const look = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = formText(event.currentTarget, 'code');
    void run(async () => {
      setDevice(await request(own<Device>('post', '/console/device', { code: given })));
      setCode(given);
    });
  };
  const decide = (isApproved: boolean, environmentId: number | null): void =>
    void run(async () => {
      const body = { code, approve: isApproved, environment_id: environmentId };
      await request(own('post', '/console/device/decision', body));
      const text = isApproved
        ? 'The program is let in. Go back to the terminal.'
        : 'The program is not let in.';
      setEnding(text);
      announce(text);
    });

  return (
    <>
      <header className="title">
        <h1>Let a program in</h1>
      </header>
      <div className="card stack">
        {!isUser && (
          <p>
            A user lets a program in, signed in with an email. This session is of a token or of the
            demo.
          </p>
        )}
        {isUser && ending !== undefined && <p>{ending}</p>}
        {isUser && ending === undefined && !device && (
          <form onSubmit={look} className="stack">
            <p>
              Type the code that <code>sluice login</code> shows in your own terminal. If somebody
              sent you a code, do not type it: it would let them in as you.
            </p>
            <label htmlFor="code">Code of eight letters</label>
            <input
              id="code"
              name="code"
              autoComplete="off"
              autoCapitalize="characters"
              spellCheck={false}
              maxLength={12}
              required
              {...FOCUSED}
            />
            <Refusal problem={problem} />
            <div className="actions">
              <button type="submit" className="main" disabled={isRunning}>
                Go on
              </button>
            </div>
          </form>
        )}
        {isUser && ending === undefined && device && (
          <Question device={device} isRunning={isRunning} problem={problem} onDecided={decide} />
        )}
      </div>
    </>
  );
}

function Question({
  device,
  isRunning,
  problem,
  onDecided,
}: {
  readonly device: Device;
  readonly isRunning: boolean;
  readonly problem: string | undefined;
  readonly onDecided: (isApproved: boolean, environmentId: number | null) => void;
}) {
  const { user, account, workspaces, workspaceId, capabilities } = useSession();
  const [chosen, setChosen] = useState(workspaceId === 0 ? '' : String(workspaceId));
  const isManager = capabilities.includes('workspace.manage');
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        onDecided(true, chosen === '' ? null : Number(chosen));
      }}
    >
      <p>
        A program waits that asks to act for <b>{visibleText(user.email)}</b> ({user.role}) in the
        account <b>{visibleText(account.name)}</b> for 90 days. You can end it at any time under
        Settings.
      </p>
      <dl className="pairs">
        <div>
          <dt>Its machine calls itself</dt>
          <dd>{visibleText(device.client_name)}</dd>
        </div>
        <div>
          <dt>It asked from</dt>
          <dd>
            {device.ip_addr ?? 'an unknown address'}
            {device.is_same_network ? ', as this browser' : ''}
          </dd>
        </div>
        <div>
          <dt>It asked at</dt>
          <dd>
            <Time atMs={Date.parse(device.started_at)} />
          </dd>
        </div>
      </dl>
      {!device.is_same_network && (
        <p className="refusal" role="alert">
          It asked from another network than this browser. Let it in only if you have typed{' '}
          <code>sluice login</code> there yourself.
        </p>
      )}
      <label htmlFor="workspace">{`Workspace that it may ${isManager ? 'manage' : 'read'}`}</label>
      <select
        id="workspace"
        value={chosen}
        onChange={(event) => setChosen(event.currentTarget.value)}
      >
        {workspaces.map(({ id, name }) => (
          <option key={id} value={String(id)}>
            {visibleText(name)}
          </option>
        ))}
        <option value="">None</option>
      </select>
      <Refusal problem={problem} />
      <div className="actions">
        <button type="submit" className="main" disabled={isRunning}>
          Let it in
        </button>
        <button
          type="button"
          onClick={() => {
            if (!isRunning) onDecided(false, null);
          }}
          {...FOCUSED}
        >
          Do not let it in
        </button>
      </div>
    </form>
  );
}
