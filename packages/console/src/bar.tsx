/** The bar above every screen: the workspace, the zone of times, the theme, and the user. */
import { useState } from 'react';
import { useSession } from './client/session.ts';
import { changeTheme, currentTheme } from './parts/preferences.ts';
import { useRouting, useSetQuery } from './routing/router.tsx';

/** Zones of times, as the address has them, each with the one that the button changes to. */
const ZONES = [
  { tz: undefined, name: 'UTC', text: 'UTC', next: 'local' },
  { tz: 'local', name: 'Local', text: 'local', next: 'account' },
  { tz: 'account', name: 'Account', text: 'in the zone of the account', next: undefined },
] as const;

export function Bar({ onPalette }: { readonly onPalette: () => void }) {
  const { workspaces, workspaceId, user, session, account, signOut } = useSession();
  const { place } = useRouting();
  const setQuery = useSetQuery();
  const [theme, setTheme] = useState(currentTheme);
  const zone = ZONES.find(({ tz }) => tz === place.query['tz']) ?? ZONES[0];
  return (
    <header className="bar">
      {workspaces.length > 1 ? (
        <select
          aria-label="Workspace"
          value={String(workspaceId)}
          onChange={(event) => setQuery({ workspace: event.currentTarget.value }, false)}
        >
          {workspaces.map(({ id, name }) => (
            <option key={id} value={String(id)}>
              {name}
            </option>
          ))}
        </select>
      ) : (
        <span className="workspace">{workspaces[0]?.name}</span>
      )}
      <span className="grow" />
      <button type="button" onClick={onPalette} className="go">
        Go to … <kbd>Ctrl K</kbd>
      </button>
      <button
        type="button"
        data-zone=""
        onClick={() => setQuery({ tz: zone.next })}
        aria-label={`Times are ${zone.text}; change`}
        title={zone.tz === 'account' ? account.timezone : undefined}
      >
        {zone.name}
      </button>
      <button
        type="button"
        onClick={() => setTheme(changeTheme())}
        aria-label={`Theme: ${theme} (change)`}
        title={`Theme: ${theme}`}
      >
        <span className={`theme ${theme}`} aria-hidden="true" />
      </button>
      <span className="user" title={user.role}>
        {session.way === 'demo' ? 'Demo' : user.email}
      </span>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </header>
  );
}
