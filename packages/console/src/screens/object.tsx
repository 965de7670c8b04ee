/** One object: its attributes, and the people that are related to it. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

export const objectRoute: Route = {
  pattern: '/objects/:type/:id',
  title: ({ id }) => `Object ${id}`,
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { params, query } }) => (
    <ObjectView
      key={`${params['type']} ${params['id']}`}
      type={params['type'] ?? ''}
      id={params['id'] ?? ''}
      start={query['start']}
    />
  ),
};

function ObjectView({
  type,
  id,
  start,
}: {
  readonly type: string;
  readonly id: string;
  readonly start: string | undefined;
}) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const path = { object_type_id: type, object_id: id };
  const object = useResource(get('/v1/objects/{object_type_id}/{object_id}/attributes', { path }), {
    workspaceId,
  });
  const people = useResource(
    get('/v1/objects/{object_type_id}/{object_id}/relationships', {
      path,
      query: { limit: 50, start },
    }),
    { workspaceId },
  );
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/objects" query={{ type }}>
            Objects
          </Link>
        </p>
        <h1>{visibleText(id)}</h1>
        <p className="lead">An object of type {visibleText(type)}.</p>
      </header>
      <Shown resource={object} lines={3}>
        {({ object: { attributes } }) => (
          <section className="card" aria-label="Attributes">
            <dl className="pairs">
              {Object.entries(attributes).map(([name, value]) => (
                <div key={name}>
                  <dt>{visibleText(name)}</dt>
                  <dd>{visibleText(value)}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
      </Shown>
      <section className="stack" aria-labelledby="related">
        <h2 id="related">People</h2>
        <Shown resource={people} lines={3}>
          {({ svc_relationships: relationships, next }) =>
            relationships.length === 0 ? (
              <p className="faint">No person is related to it.</p>
            ) : (
              <>
                <ListTable
                  caption="People that are related to it"
                  heads={['Person', 'Email', 'Since']}
                >
                  {relationships.map(({ identifiers: person, timestamps }) => (
                    <tr key={person.svc_id}>
                      <th scope="row">
                        <Link
                          to={`/people/${segment(person.svc_id)}`}
                          query={{ by: 'svc_id' }}
                          data-row=""
                        >
                          {visibleText(person.id ?? person.svc_id)}
                        </Link>
                      </th>
                      <td>{visibleText(person.email ?? '')}</td>
                      <td>
                        <Time atMs={(timestamps['created_at'] ?? 0) * 1000} isWhole />
                      </td>
                    </tr>
                  ))}
                </ListTable>
                <PageButtons
                  start={start}
                  next={next}
                  onStart={(to) => setQuery({ start: to }, false)}
                />
              </>
            )
          }
        </Shown>
      </section>
    </>
  );
}
