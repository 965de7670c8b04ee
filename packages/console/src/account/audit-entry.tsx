/** One entry of the audit log: its actor, its call, the values before and after, and its place in the chain. */
import { get } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Copyable } from '../parts/copy-button.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { actorText, valueText } from '../sentences/audit-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

type WholeEntry = Described<'AuditLogDetailResponse'>['audit_log'];

export const auditEntryRoute: Route = {
  pattern: '/audit/:id',
  title: ({ id }) => `Change ${id}`,
  query: {},
  capability: 'account.manage',
  screen: ({ place: { params } }) => <Entry key={params['id']} id={params['id'] ?? ''} />,
};

function Entry({ id }: { readonly id: string }) {
  const { account } = useSession();
  const callOf = (entryId: number | string) =>
    get('/v1/accounts/{account_id}/audit_log/{audit_log_id}', {
      path: { account_id: account.id, audit_log_id: entryId },
    });
  const resource = useResource(callOf(id));
  const before = useResource(Number(id) > 1 ? callOf(Number(id) - 1) : undefined);
  return (
    <Shown isScreen resource={resource} lines={4}>
      {({ audit_log: entry }) => (
        <>
          <header className="title">
            <p className="above">
              <Link to="/audit">Audit log</Link>
            </p>
            <h1>
              {visibleText(actorText(entry.actor))} {entry.action}{' '}
              {entry.object_type.replaceAll('_', ' ')}{' '}
              {visibleText(entry.object_name ?? entry.object_id)}
            </h1>
          </header>
          <Changes entry={entry} />
          <section className="card" aria-label="The call">
            <dl className="pairs">
              <div>
                <dt>At</dt>
                <dd>
                  <Time atMs={Date.parse(entry.occurred_at)} />
                </dd>
              </div>
              <div>
                <dt>Object</dt>
                <dd>
                  <Link to="/audit" query={{ object: entry.object_type, id: entry.object_id }}>
                    all changes of {entry.object_type} {visibleText(entry.object_id)}
                  </Link>
                </dd>
              </div>
              {entry.context.credential_id !== null && (
                <div>
                  <dt>Key</dt>
                  <dd>
                    <Link to={`/keys/${entry.context.credential_id}`}>
                      {entry.context.credential_id}
                    </Link>
                  </dd>
                </div>
              )}
              {entry.context.session_id !== null && (
                <div>
                  <dt>Session</dt>
                  <dd>
                    <Link to="/audit" query={{ session: String(entry.context.session_id) }}>
                      all changes of session {entry.context.session_id}
                    </Link>
                  </dd>
                </div>
              )}
              <Pair name="Address" text={entry.ip_addr} />
              <Pair name="Agent" text={entry.user_agent} />
              <Pair name="Request" text={entry.request_id} />
              <Pair name="Purchase" text={entry.context.run_id} />
              <div>
                <dt>Chain</dt>
                <dd>
                  {entry.id === 1 || before.data?.audit_log.hash === entry.prev_hash
                    ? 'fits the entry before'
                    : before.data
                      ? 'does not fit the entry before: run sluice verify'
                      : ''}{' '}
                  <Copyable text={entry.hash} what="the hash" />
                </dd>
              </div>
            </dl>
          </section>
        </>
      )}
    </Shown>
  );
}

const Pair = ({ name, text }: { readonly name: string; readonly text: string | null }) =>
  text === null ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{visibleText(text)}</dd>
    </div>
  );

function Changes({ entry }: { readonly entry: WholeEntry }) {
  return (
    <ListTable caption="Attributes before and after" heads={['Attribute', 'Before', 'After']}>
      {entry.changes.map(({ attribute, from, to, redacted }) => (
        <tr key={attribute}>
          <th scope="row">{attribute}</th>
          {redacted ? (
            <td colSpan={2} className="faint">
              changed; a secret is not kept
            </td>
          ) : (
            <>
              <td>
                <del>{visibleText(valueText(from))}</del>
              </td>
              <td>
                <ins>{visibleText(valueText(to))}</ins>
              </td>
            </>
          )}
        </tr>
      ))}
    </ListTable>
  );
}
