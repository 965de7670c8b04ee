/** Users of the account, with their roles; for an account_admin. */
import { type FormEvent, useState } from 'react';
import { get, post } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { announce } from '../parts/announcer.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { formText } from '../forms/form-text.ts';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { IdentityProviderCard } from './identity-provider.tsx';
import { type Role, RoleField, type User, UserDetail, WorkspaceFields } from './user-detail.tsx';

export const usersRoute: Route = {
  pattern: '/users',
  title: () => 'Users',
  query: { user: /^[1-9]\d{0,9}$/, removed: ['shown'] },
  capability: 'account.manage',
  screen: ({ place: { query } }) => <Users query={query} />,
};

function Users({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const [isInviting, setIsInviting] = useState(false);
  const resource = useResource(
    get('/v1/accounts/{account_id}/all_users', { path: { account_id: account.id } }),
  );
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
          <ListTable
            caption="Users of the account"
            heads={['Email', 'Role', 'State', 'Two factors', 'Last sign-in']}
          >
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
          </ListTable>
        )}
      </Shown>
      <IdentityProviderCard />
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

function Invite({
  onClose,
  onInvited,
}: {
  readonly onClose: () => void;
  readonly onInvited: () => void;
}) {
  const { account, workspaces } = useSession();
  const [role, setRole] = useState<Role>('member');
  const [environmentIds, setEnvironmentIds] = useState<readonly number[]>(
    workspaces.map(({ id }) => id),
  );
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const invite = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const email = formText(event.currentTarget, 'email');
    void run(async () => {
      await callOnce(
        post('/v1/accounts/{account_id}/users', {
          path: { account_id: account.id },
          body: { email, role, environment_ids: environmentIds },
        }),
      );
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
          The invitation is mailed. The first sign-in, by a mailed code, proves the address. A user
          of another account gets no mail, and signs in there until that account removes them.
        </p>
        <FormEnd problem={problem} isRunning={isRunning} what="Invite" onClose={onClose} />
      </form>
    </Dialog>
  );
}
