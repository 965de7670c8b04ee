/** Links to the portal: their addressees and rights, their end, and the pages that may show the portal in a frame. */
import { type FormEvent, useState } from 'react';
import { get, put, remove } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { request } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { linesOf } from '../sentences/subscription-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

type PortalLink = Described<'PortalLink'>;

export const portalLinksRoute: Route = {
  pattern: '/portal-links',
  title: () => 'Portal links',
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <PortalLinks start={query['start']} />,
};

function PortalLinks({ start }: { readonly start: string | undefined }) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const links = useResource(get('/v1/portal_links', { query: { start } }), {
    workspaceId,
    intervalMs: 10_000,
  });
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/webhooks">Webhooks</Link>
        </p>
        <h1>Portal links</h1>
        <p className="lead">
          Your server makes one when an engineer of a customer opens the page of their webhooks:{' '}
          <Link to="/docs/portal/createPortalLink">POST /v1/portal_links</Link>. Here they are seen
          and ended.
        </p>
      </header>
      <Origins />
      <Shown resource={links}>
        {({ portal_links: shown, next }) => (
          <>
            {shown.length === 0 ? (
              <Empty title="No link is open">
                <p>A link ends by itself, at the latest after seven days.</p>
              </Empty>
            ) : (
              <LinkTable links={shown} onEnded={() => void links.reload()} />
            )}
            <PageButtons
              start={start}
              next={next}
              onStart={(to) => setQuery({ start: to }, false)}
            />
          </>
        )}
      </Shown>
    </>
  );
}

function LinkTable({
  links,
  onEnded,
}: {
  readonly links: readonly PortalLink[];
  readonly onEnded: () => void;
}) {
  const [asked, setAsked] = useState<PortalLink>();
  return (
    <>
      <ListTable
        caption="Links that are not over, the newest first"
        heads={['For', 'Opens', 'May', 'Opened', 'Ends', 'End it']}
      >
        {links.map((link) => (
          <tr key={link.id}>
            <th scope="row" className="clip">
              {visibleText(link.for)}
            </th>
            <td className="clip">
              {link.application !== undefined && (
                <Link to={`/applications/${segment(link.application)}`}>
                  {visibleText(link.application)}
                </Link>
              )}
              {link.webhook_ids.map((id) => (
                <span key={id}>
                  <Link to={`/webhooks/${id}`}>{id}</Link>{' '}
                </span>
              ))}
            </td>
            <td className="clip">{link.capabilities.join(', ')}</td>
            <td>
              {link.opened_at === null ? (
                'never'
              ) : (
                <Time atMs={Date.parse(link.opened_at)} isWhole />
              )}
            </td>
            <td>
              <Time atMs={Date.parse(link.expires_at)} isWhole />
            </td>
            <td>
              <button
                type="button"
                aria-label={`End the link for ${link.for}`}
                onClick={() => setAsked(link)}
              >
                End …
              </button>
            </td>
          </tr>
        ))}
      </ListTable>
      {asked && (
        <Dialog
          title={`End the link for ${visibleText(asked.for)}?`}
          onClose={() => setAsked(undefined)}
        >
          <p>A visitor who has it open is out within a second. The webhooks go on.</p>
          <div className="actions">
            <ActionButton
              call={remove('/v1/portal_links/{portal_link_id}', {
                path: { portal_link_id: asked.id },
              })}
              capability="workspace.manage"
              isMain
              done="The link is ended"
              onDone={() => {
                setAsked(undefined);
                onEnded();
              }}
            >
              End the link
            </ActionButton>
            <button type="button" onClick={() => setAsked(undefined)}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Origins() {
  const { workspaceId, capabilities } = useSession();
  const isAllowed = capabilities.includes('account.manage');
  const [isChanging, setIsChanging] = useState(false);
  const resource = useResource(get('/v1/portal_origins'), { workspaceId });
  return (
    <section className="card" aria-labelledby="origins">
      <h2 id="origins">Pages that may show it in a frame</h2>
      <Shown resource={resource} lines={1}>
        {({ portal_origins: origins }) => (
          <>
            {origins.length === 0 ? (
              <p>Without an address, the portal opens in a tab of its own.</p>
            ) : (
              <ul className="plain-list">
                {origins.map((origin) => (
                  <li key={origin}>
                    <code>{visibleText(origin)}</code>
                  </li>
                ))}
              </ul>
            )}
            <div className="actions">
              <button
                type="button"
                disabled={!isAllowed}
                title={isAllowed ? undefined : 'An account_admin may change it'}
                onClick={() => setIsChanging(true)}
              >
                Change the origins …
              </button>
            </div>
            {isChanging && (
              <OriginsForm
                origins={origins}
                onClose={() => setIsChanging(false)}
                onSaved={() => {
                  setIsChanging(false);
                  void resource.reload();
                }}
              />
            )}
          </>
        )}
      </Shown>
    </section>
  );
}

function OriginsForm({
  origins,
  onClose,
  onSaved,
}: {
  readonly origins: readonly string[];
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { account, workspaceId } = useSession();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = linesOf(formText(event.currentTarget, 'origins'));
    void run(async () => {
      await request(
        put('/v1/accounts/{account_id}/environments/{environment_id}', {
          path: { account_id: account.id, environment_id: workspaceId },
          body: { environment: { portal_origins: given } },
        }),
      );
      announce('The origins are changed');
      onSaved();
    });
  };
  return (
    <Dialog title="Origins that may show the portal" onClose={onClose}>
      <form onSubmit={save}>
        <label htmlFor="origins-lines">Scheme, host and port, one a line</label>
        <textarea
          id="origins-lines"
          name="origins"
          rows={4}
          spellCheck={false}
          placeholder="https://app.example.com"
          defaultValue={origins.join('\n')}
          {...FOCUSED}
        />
        <FormEnd problem={problem} isRunning={isRunning} what="Save them" onClose={onClose} />
      </form>
    </Dialog>
  );
}
