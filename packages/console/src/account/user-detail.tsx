/** One user: the role, the workspaces, and help for a user who is locked out. */
import { useState } from 'react';
import { put, remove } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { visibleText } from '../sentences/visible-text.ts';

export type User = Described<'User'>;
export type Role = User['role'];

const ROLES = ['member', 'billing_admin', 'account_admin'] as const satisfies readonly Role[];

export function UserDetail({
  user,
  onChanged,
}: {
  readonly user: User;
  readonly onChanged: () => void;
}) {
  const session = useSession();
  const path = { account_id: session.account.id, user_id: user.id };
  const [role, setRole] = useState(user.role);
  const [environmentIds, setEnvironmentIds] = useState<readonly number[]>(user.environment_ids);
  const [isRemoving, setIsRemoving] = useState(false);
  // Values that a colleague has changed take the place of the ones in the form. A `key` would make a new form, and the
  // focus would leave “Save”.
  const read = JSON.stringify([user.role, user.environment_ids]);
  const [formed, setFormed] = useState(read);
  if (formed !== read) {
    setFormed(read);
    setRole(user.role);
    setEnvironmentIds(user.environment_ids);
  }
  // The changes alone: a colleague may have changed the rest since it was read.
  const change = {
    ...(role !== user.role && { role }),
    ...(!areSame(environmentIds, user.environment_ids) && { environment_ids: environmentIds }),
  };
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
          call={put('/v1/accounts/{account_id}/users/{user_id}', { path, body: change })}
          capability="account.manage"
          isMain
          isDisabled={Object.keys(change).length === 0}
          done={`${user.email} is changed`}
          onDone={onChanged}
        >
          Save
        </ActionButton>
      </div>
      <div className="actions">
        <ActionButton
          call={remove('/v1/accounts/{account_id}/users/{user_id}/sessions', { path })}
          capability="account.manage"
          done="The sessions and programs are ended"
          onDone={onChanged}
        >
          End all sessions and programs
        </ActionButton>
        {user.two_factor_enabled && user.id !== session.user.id && (
          <ActionButton
            call={remove('/v1/accounts/{account_id}/users/{user_id}/second_factor', { path })}
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
            The user is signed out at once and comes in no more. The audit log keeps the user’s
            changes.
          </p>
          <div className="actions">
            <ActionButton
              call={remove('/v1/accounts/{account_id}/users/{user_id}', { path })}
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

const areSame = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((id) => other.includes(id));

export function RoleField({
  id,
  value,
  onChange,
}: {
  readonly id: string;
  readonly value: Role;
  readonly onChange: (role: Role) => void;
}) {
  return (
    <label htmlFor={id}>
      Role{' '}
      <select
        id={id}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value as Role)}
      >
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The workspaces of the signed-in user; others that the user has already stay. */
export function WorkspaceFields({
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
