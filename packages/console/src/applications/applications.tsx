/** The applications of the workspace: its customers, each with endpoints of its own. */
import { get } from '../client/calls.ts';
import { useSession } from '../client/session.ts';
import { FilterText } from '../forms/filter-text.tsx';
import { MadeList } from '../lists/made-list.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { linkTo, segment } from '../routing/location.ts';
import { Link, navigate, type Route, useRouting, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { ApplicationForm } from './application-form.tsx';
import type { Application } from './application.ts';

const PAGE_COUNT = 50;

export const applicationsRoute: Route = {
  pattern: '/applications',
  title: () => 'Applications',
  query: { begins: /^[^]{1,150}$/, start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <Applications query={query} />,
};

function Applications({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { place } = useRouting();
  const setQuery = useSetQuery();
  const { begins, start } = query;
  return (
    <MadeList
      title="Applications"
      call={get('/v1/applications', { query: { limit: PAGE_COUNT, query: begins, start } })}
      lead="Your customers: each has endpoints, secrets, a queue and a portal of its own."
      links={<Link to="/portal-links">Portal links</Link>}
      filters={
        <div className="filters" role="search" aria-label="Find an application">
          <FilterText
            label="Id begins with"
            name="begins"
            value={begins}
            onChange={(text) => setQuery({ begins: text, start: undefined })}
          />
        </div>
      }
      making={{
        what: 'Make an application',
        capability: 'workspace.manage',
        form: ({ onClose }) => (
          <ApplicationForm
            onClose={onClose}
            onSaved={({ id }) => navigate(linkTo(`/applications/${segment(id)}`, place.query))}
          />
        ),
      }}
      isEmpty={({ applications }) => applications.length === 0}
      empty={<NoApplication begins={begins} />}
      table={({ applications }) => <ApplicationTable applications={applications} />}
      pages={{ start, nextOf: ({ next }) => next }}
    />
  );
}

function ApplicationTable({ applications }: { readonly applications: readonly Application[] }) {
  return (
    <ListTable caption="Applications, by id" heads={['Id', 'Name', 'Made']}>
      {applications.map(({ id, name, created_at: createdAt }) => (
        <tr key={id}>
          <th scope="row" className="clip">
            <Link to={`/applications/${segment(id)}`} data-row="">
              {visibleText(id)}
            </Link>
          </th>
          <td className="clip">{visibleText(name)}</td>
          <td>
            <Time atMs={Date.parse(createdAt)} isWhole />
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function NoApplication({ begins }: { readonly begins: string | undefined }) {
  const { intake_url: intakeUrl } = useSession();
  if (begins !== undefined)
    return (
      <Empty title="No application begins with that">
        <p>The beginning of an id, in its letter case.</p>
      </Empty>
    );
  return (
    <Empty title="There is no application yet">
      <p>
        An application is a customer of yours. A message that names it goes to its endpoints alone;
        its engineers see them in the portal. A workspace may have 100,000.
      </p>
      <CallSample
        label="An application, by a call"
        method="POST"
        path="/v1/applications"
        body={{ id: 'acme', name: 'Acme' }}
      />
      <CallSample
        label="An endpoint of it"
        method="POST"
        path="/v1/applications/acme/endpoints"
        body={{ name: 'Orders', endpoint: 'https://example.com/hook' }}
      />
      <CallSample
        label="A message to it"
        method="POST"
        path="/v1/publish"
        intakeUrl={intakeUrl}
        body={{ application: 'acme', event_type: 'order_placed', payload: { order_id: '42' } }}
      />
    </Empty>
  );
}
