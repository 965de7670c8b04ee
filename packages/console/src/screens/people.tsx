/** People: the latest, those whose identifiers begin with a text, and one that is looked up by an identifier. */
import type { FormEvent } from 'react';
import { get } from '../client/calls.ts';
import type { QueryOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FilterText } from '../forms/filter-text.tsx';
import { formText } from '../forms/form-text.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { choiceOf, linkTo, segment } from '../routing/location.ts';
import { personAddress } from '../routing/person-address.ts';
import { Link, navigate, type Route, useRouting, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

export type IdType = NonNullable<QueryOf<'/v1/customers/{identifier}/attributes'>['id_type']>;

export const ID_TYPES = ['id', 'email', 'svc_id'] as const satisfies readonly IdType[];

/** A person, as the calls about one name them. */
export interface OfPerson {
  readonly path: { readonly identifier: string };
  readonly idType: IdType;
}

export const peopleRoute: Route = {
  pattern: '/people',
  title: () => 'People',
  query: { by: ID_TYPES, begins: /^[^]{1,254}$/, start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <People query={query} />,
};

/** Kind of an identifier by its form; a person may have an id in the form of another kind. */
function idTypeOf(text: string): IdType {
  if (text.includes('@')) return 'email';
  return /^(?:svc|cio)_/.test(text) ? 'svc_id' : 'id';
}

function People({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { place } = useRouting();
  const setQuery = useSetQuery();
  const open = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = formText(event.currentTarget, 'identifier');
    const chosen = formText(event.currentTarget, 'by');
    const by = chosen === '' ? idTypeOf(text) : chosen;
    if (text === '') return;
    const { path, query: asked } = personAddress(text, choiceOf(ID_TYPES, by) ?? 'id');
    navigate(linkTo(path, place.query, asked));
  };
  return (
    <>
      <header className="title">
        <h1>People</h1>
      </header>
      <form className="filters" role="search" aria-label="Find a person" onSubmit={open}>
        <label>
          Identifier{' '}
          <input type="search" name="identifier" data-filter="" required spellCheck={false} />
        </label>
        <label>
          Kind{' '}
          <select name="by" defaultValue="">
            <option value="">as it looks</option>
            {ID_TYPES.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" className="main">
          Find
        </button>
      </form>
      <div className="filters">
        <FilterText
          label="Begins with"
          name="begins"
          value={query['begins']}
          onChange={(text) => setQuery({ begins: text, start: undefined })}
        />
      </div>
      <PeopleList begins={query['begins']} start={query['start']} />
    </>
  );
}

function PeopleList({
  begins,
  start,
}: {
  readonly begins: string | undefined;
  readonly start: string | undefined;
}) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(
    get('/v1/customers', { query: { query: begins ?? '', limit: 50, start } }),
    { workspaceId },
  );
  return (
    <Shown resource={resource}>
      {({ results, next = '' }) => (
        <>
          {results.length === 0 ? (
            <Empty
              title={begins === undefined ? 'No person yet' : 'No identifier begins with that'}
            >
              <p>
                The beginning of an id, in its letter case, or of an email; or a whole svc_id. A
                person comes with the first call about them.
              </p>
            </Empty>
          ) : (
            <ListTable
              caption={begins === undefined ? 'The latest people' : 'People who fit'}
              heads={['Person', 'Email', 'svc_id']}
            >
              {results.map((person) => (
                <tr key={person.svc_id}>
                  <th scope="row" className="clip">
                    <Link
                      to={`/people/${segment(person.svc_id)}`}
                      query={{ by: 'svc_id' }}
                      data-row=""
                    >
                      {visibleText(person.id ?? person.email ?? person.svc_id)}
                    </Link>
                  </th>
                  <td className="clip">{visibleText(person.email ?? '–')}</td>
                  <td>
                    <code>{person.svc_id}</code>
                  </td>
                </tr>
              ))}
            </ListTable>
          )}
          <PageButtons start={start} next={next} onStart={(to) => setQuery({ start: to }, false)} />
        </>
      )}
    </Shown>
  );
}
