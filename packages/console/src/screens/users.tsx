/** Who may sign in to the account, with which role; for an account_admin. */
import { type FormEvent, useRef, useState } from 'react';
import { request, RequestFailed } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { announce } from '../parts/announcer.tsx';
import { ActionButton } from '../parts/action-button.tsx';
import { Badge } from '../parts/badge.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { formText } from '../parts/form-text.ts';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useWork } from '../parts/use-work.ts';
import { type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

interface User {
  readonly id: number;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly role: string;
  readonly status: 'active' | 'invited' | 'deactivated';
  readonly two_factor_enabled: boolean;
  readonly environment_ids: readonly number[];
  readonly last_sign_in_at: string | null;
}

const ROLES = ['member', 'billing_admin', 'account_admin'] as const;

export const usersRoute: Route = {
  pattern: '/users',
  title: () => 'Users',
  query: { user: /^[1-9]\d{0,9}$/, removed: ['shown'] },
  screen: ({ place: { query } }) => <Users query={query} />,
};

function Users({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const [isInviting, setIsInviting] = useState(false);
  const resource = useResource<{ users: readonly User[] }>(`/v1/accounts/${account.id}/all_users`);
  const isShown = query['removed'] === 'shown';
  return (
    <>
      <header className="title">
        <h1>Users</h1>
        <div className="actions">
          <button type="button" className="main" onClick={() => setIsInviting(true)}>
            Invite
          </button>
          <button
            type="button"
            aria-pressed={isShown}
            onClick={() => setQuery({ removed: isShown ? undefined : 'shown' })}
          >
            Show removed ones
          </button>
        </div>
      </header>
      <Shown resource={resource}>
        {({ users }) => (
          <table className="list">
            <caption className="unseen">Users of the account</caption>
            <thead>
              <tr>
                <th scope="col">Email</th>
                <th scope="col">Role</th>
                <th scope="col">State</th>
                <th scope="col">Two factors</th>
                <th scope="col">Last sign-in</th>
              </tr>
            </thead>
            <tbody>
              {users
                .filter(({ status }) => isShown || status !== 'deactivated')
                .map((user) => (
                  <UserRows
                    key={user.id}
                    user={user}
                    isOpen={query['user'] === String(user.id)}
                    onOpen={(isOpen) =>
                      setQuery({ user: isOpen ? String(user.id) : undefined }, false)
                    }
                    onChanged={() => void resource.reload()}
                  />
                ))}
            </tbody>
          </table>
        )}
      </Shown>
      {isInviting && (
        <Invite
          onClose={() => setIsInviting(false)}
          onInvited={() => {
            setIsInviting(false);
            void resource.reload();
          }}
        />
      )}
    </>
  );
}

interface UserRowsProps {
  readonly user: User;
  readonly isOpen: boolean;
  readonly onOpen: (isOpen: boolean) => void;
  readonly onChanged: () => void;
}

function UserRows({ user, isOpen, onOpen, onChanged }: UserRowsProps) {
  return (
    <>
      <tr className={isOpen ? 'open' : ''} onClick={() => onOpen(!isOpen)}>
        <th scope="row">
          <button
            type="button"
            className="plain"
            aria-expanded={isOpen}
            data-row=""
            onClick={(event) => {
              event.stopPropagation();
              onOpen(!isOpen);
            }}
          >
            {visibleText(user.email)}
          </button>
        </th>
        <td>{user.role}</td>
        <td>
          <Badge
            state={user.status}
            text={user.status === 'deactivated' ? 'removed' : user.status}
          />
        </td>
        <td>{user.two_factor_enabled ? 'on' : 'off'}</td>
        <td>
          {user.last_sign_in_at === null ? (
            'never'
          ) : (
            <Time atMs={Date.parse(user.last_sign_in_at)} isWhole />
          )}
        </td>
      </tr>
      {isOpen && (
        <tr className="detail">
          <td colSpan={5}>
            {user.status === 'deactivated' ? (
              <p>Removed: invite the same address to let this user in again.</p>
            ) : (
              <UserDetail user={user} onChanged={onChanged} />
            )}
          </td>
        </tr>
      )}
    </>
  );
}

function UserDetail({ user, onChanged }: Pick<UserRowsProps, 'user' | 'onChanged'>) {
  const session = useSession();
  const path = `/v1/accounts/${session.account.id}/users/${user.id}`;
  const [role, setRole] = useState(user.role);
  const [environmentIds, setEnvironmentIds] = useState(user.environment_ids);
  const [isRemoving, setIsRemoving] = useState(false);
  return (
    <>
      <p>
        {visibleText(`${user.first_name} ${user.last_name}`)}{' '}
        <span className="faint">{user.id}</span>
      </p>
      <div className="filters">
        <RoleField id={`role-${user.id}`} value={role} onChange={setRole} />
        <WorkspaceFields value={environmentIds} onChange={setEnvironmentIds} />
        <ActionButton
          path={path}
          method="PUT"
          body={{ role, environment_ids: environmentIds }}
          capability="account.manage"
          isMain
          done={`${user.email} is changed`}
          onDone={onChanged}
        >
          Save
        </ActionButton>
      </div>
      <div className="actions">
        <ActionButton
          path={`${path}/sessions`}
          method="DELETE"
          capability="account.manage"
          done="The sessions are ended"
          onDone={onChanged}
        >
          End all sessions
        </ActionButton>
        {user.two_factor_enabled && user.id !== session.user.id && (
          <ActionButton
            path={`${path}/second_factor`}
            method="DELETE"
            capability="account.manage"
            done="The second factor is reset"
            onDone={onChanged}
          >
            Reset the second factor
          </ActionButton>
        )}
        <button type="button" onClick={() => setIsRemoving(true)}>
          Remove …
        </button>
      </div>
      {isRemoving && (
        <Dialog title={`Remove ${visibleText(user.email)}?`} onClose={() => setIsRemoving(false)}>
          <p>
            The user is signed out at once and comes in no more. What the user did stays in the
            audit log.
          </p>
          <div className="actions">
            <ActionButton
              path={path}
              method="DELETE"
              capability="account.manage"
              isMain
              done={`${user.email} is removed`}
              onDone={() => {
                setIsRemoving(false);
                onChanged();
              }}
            >
              Remove the user
            </ActionButton>
            <button type="button" onClick={() => setIsRemoving(false)}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function RoleField({
  id,
  value,
  onChange,
}: {
  readonly id: string;
  readonly value: string;
  readonly onChange: (role: string) => void;
}) {
  return (
    <label htmlFor={id}>
      Role{' '}
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Those of the signed-in user; others that the user has already stay. */
function WorkspaceFields({
  value,
  onChange,
}: {
  readonly value: readonly number[];
  readonly onChange: (environmentIds: readonly number[]) => void;
}) {
  const { workspaces } = useSession();
  return (
    <fieldset>
      <legend>Workspaces</legend>
      {workspaces.map(({ id, name }) => (
        <label key={id}>
          <input
            type="checkbox"
            checked={value.includes(id)}
            onChange={(event) =>
              onChange(
                event.currentTarget.checked ? [...value, id] : value.filter((each) => each !== id),
              )
            }
          />{' '}
          {visibleText(name)}
        </label>
      ))}
    </fieldset>
  );
}

function Invite({
  onClose,
  onInvited,
}: {
  readonly onClose: () => void;
  readonly onInvited: () => void;
}) {
  const { account, workspaces } = useSession();
  const [role, setRole] = useState('member');
  const [environmentIds, setEnvironmentIds] = useState<readonly number[]>(
    workspaces.map(({ id }) => id),
  );
  const key = useRef(crypto.randomUUID());
  const { isRunning, problem, run } = useWork();
  const invite = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const email = formText(event.currentTarget, 'email');
    void run(async () => {
      try {
        await request(`/v1/accounts/${account.id}/users`, {
          method: 'POST',
          body: { email, role, environment_ids: environmentIds },
          idempotencyKey: key.current,
        });
      } catch (error) {
        // Another try is another call, unless it is not known what became of this one.
        if (error instanceof RequestFailed && error.status !== 0) key.current = crypto.randomUUID();
        throw error;
      }
      announce(`${email} is invited`);
      onInvited();
    });
  };
  return (
    <Dialog title="Invite a user" onClose={onClose}>
      <form onSubmit={invite}>
        <label htmlFor="invited-email">Email</label>
        <input
          id="invited-email"
          name="email"
          type="email"
          autoComplete="off"
          required
          {...FOCUSED}
        />
        <RoleField id="invited-role" value={role} onChange={setRole} />
        <WorkspaceFields value={environmentIds} onChange={setEnvironmentIds} />
        <p className="faint">
          The invitation is mailed. The first sign-in, by a mailed code, proves the address.
        </p>
        {problem !== undefined && (
          <p className="refusal" role="alert">
            {problem}
          </p>
        )}
        <div className="actions">
          <button type="submit" className="main" disabled={isRunning}>
            Invite
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
