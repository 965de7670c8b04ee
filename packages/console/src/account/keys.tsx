/** The keys and tokens of the account: which are in force, and new ones, whose secret is shown once. */
import { type FormEvent, useState } from 'react';
import { get, post } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { KeyRestrictions, restrictionsIn } from '../forms/key-restrictions.tsx';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { Empty, Shown } from '../parts/states.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import {
  type Credential,
  type CredentialType,
  KEY_TYPES,
  stateOfKey,
} from '../sentences/key-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { Role } from './user-detail.tsx';

/** As many as of the key itself, and as `/fleet` has of unknown site ids. */
const HINT_LENGTH = 4;

export const keysRoute: Route = {
  pattern: '/keys',
  title: () => 'Keys',
  query: { type: Object.keys(KEY_TYPES), over: ['shown'] },
  capability: 'account.manage',
  screen: ({ place: { query } }) => <Keys query={query} />,
};

function Keys({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession();
  const setQuery = useSetQuery();
  const nowMs = useNow(10_000);
  const [isMaking, setIsMaking] = useState(false);
  const resource = useResource(
    get('/v1/accounts/{account_id}/api_credentials', { path: { account_id: account.id } }),
  );
  const isOverShown = query['over'] === 'shown';
  return (
    <>
      <header className="title">
        <h1>Keys</h1>
        <div className="actions">
          <button type="button" className="main" onClick={() => setIsMaking(true)}>
            Make a key
          </button>
        </div>
      </header>
      <div className="filters" role="search" aria-label="Filters">
        <label>
          Type{' '}
          <select
            data-filter=""
            value={query['type'] ?? ''}
            onChange={(event) => setQuery({ type: event.currentTarget.value || undefined })}
          >
            <option value="">all</option>
            {Object.entries(KEY_TYPES).map(([type, text]) => (
              <option key={type} value={type}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          aria-pressed={isOverShown}
          onClick={() => setQuery({ over: isOverShown ? undefined : 'shown' })}
        >
          Show revoked and expired ones
        </button>
      </div>
      <Shown resource={resource}>
        {({ api_credentials: keys }) => (
          <KeyTable
            keys={keys.filter(
              (key) =>
                (query['type'] === undefined || key.type === query['type']) &&
                (isOverShown || stateOfKey(key, nowMs) === 'in force'),
            )}
            nowMs={nowMs}
          />
        )}
      </Shown>
      {isMaking && (
        <MakeKey onClose={() => setIsMaking(false)} onMade={() => void resource.reload()} />
      )}
    </>
  );
}

function KeyTable({
  keys,
  nowMs,
}: {
  readonly keys: readonly Credential[];
  readonly nowMs: number;
}) {
  const { workspaces } = useSession();
  if (keys.length === 0)
    return (
      <Empty title="No key matches">
        <p>Programs send with the keys of a workspace, and manage the account with tokens.</p>
      </Empty>
    );
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  return (
    <ListTable
      caption="Keys and tokens"
      heads={['Name', 'Type', 'Ends in', 'Opens', 'State', 'Last used']}
    >
      {keys.toReversed().map((key) => (
        <tr key={key.id}>
          <th scope="row">
            <Link to={`/keys/${key.id}`} data-row="">
              {visibleText(key.name)}
            </Link>
          </th>
          <td>{KEY_TYPES[key.type]}</td>
          <td>
            <code>…{visibleText(key.token_hint)}</code>
            {key.site_id !== null && (
              <>
                , site id <code>…{visibleText(key.site_id.slice(-HINT_LENGTH))}</code>
              </>
            )}
          </td>
          <td>
            {key.environment_id === null
              ? `the account, as ${key.role}`
              : visibleText(names.get(key.environment_id) ?? `workspace ${key.environment_id}`)}
          </td>
          <td>
            <Badge state={stateOfKey(key, nowMs)} />
          </td>
          <td>
            {key.last_used_at === null ? (
              <span className="faint">never</span>
            ) : (
              <Time atMs={Date.parse(key.last_used_at)} isWhole />
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function MakeKey({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: () => void;
}) {
  const { account, workspaceId } = useSession();
  const [type, setType] = useState<CredentialType>('pipelines');
  const [role, setRole] = useState<Role>('member');
  // In the state of this dialog alone, which is gone when it closes.
  const [secret, setSecret] = useState<string>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const make = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = formText(event.currentTarget, 'name');
    const body = {
      name,
      type,
      ...(type === 'service_account' ? { role } : { environment_id: workspaceId }),
      ...restrictionsIn(event.currentTarget),
    };
    void run(async () => {
      const made = await callOnce(
        post('/v1/accounts/{account_id}/api_credentials', {
          path: { account_id: account.id },
          body,
        }),
      );
      const { site_id: siteId } = made.api_credential;
      setSecret(siteId === null ? made.secret : `${siteId}:${made.secret}`);
      onMade();
    });
  };
  if (secret !== undefined)
    return (
      <SecretsOnce title="The new key" secrets={[secret]} onStored={onClose}>
        <p>
          {type === 'tracking' && 'The site id, a colon, and the key. '}It is not shown again: store
          it with the secrets of your programs.
        </p>
      </SecretsOnce>
    );
  return (
    <Dialog title="Make a key" onClose={onClose}>
      <form onSubmit={make}>
        <label htmlFor="key-name">Name</label>
        <input id="key-name" name="name" maxLength={100} autoComplete="off" required {...FOCUSED} />
        <label htmlFor="key-type">Type</label>
        <select
          id="key-type"
          value={type}
          onChange={(event) => setType(event.currentTarget.value as CredentialType)}
        >
          {Object.entries(KEY_TYPES).map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
        {type === 'service_account' && (
          <>
            <label htmlFor="key-role">Role</label>
            <select
              id="key-role"
              value={role}
              onChange={(event) => setRole(event.currentTarget.value as Role)}
            >
              {['member', 'billing_admin', 'account_admin'].map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </>
        )}
        <KeyRestrictions type={type} />
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          hasSecret
          what="Make the key"
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
