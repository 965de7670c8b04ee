/** Objects of people (companies, courses, …). By type, and by an attribute. */
import { useEffect, useState } from 'react';
import { get, post } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { request, RequestFailed } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FilterText } from '../forms/filter-text.tsx';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Failure, Shown, Waiting } from '../parts/states.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

const TEXT = /^[^]{1,500}$/;

export const objectsRoute: Route = {
  pattern: '/objects',
  title: () => 'Objects',
  query: { type: /^[1-9]\d{0,9}$/, field: TEXT, value: TEXT, start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <Objects query={query} />,
};

function Objects({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(get('/v1/object_types'), { workspaceId });
  const filter = (change: Record<string, string | undefined>): void =>
    setQuery({ ...change, start: undefined });
  return (
    <>
      <header className="title">
        <h1>Objects</h1>
      </header>
      <Shown resource={resource}>
        {({ types }) => {
          const type = query['type'] ?? types[0]?.object_type_id;
          if (type === undefined)
            return (
              <Empty title="There is no object yet">
                <p>A group call, or an identify of the Track API, makes one.</p>
              </Empty>
            );
          return (
            <>
              <div className="filters" role="search" aria-label="Filters">
                <label>
                  Type{' '}
                  <select
                    value={String(type)}
                    onChange={(event) => filter({ type: event.currentTarget.value })}
                  >
                    {types.map(({ object_type_id: id }) => (
                      <option key={id} value={String(id)}>
                        {id}
                      </option>
                    ))}
                  </select>
                </label>
                <FilterText
                  label="Attribute"
                  name="field"
                  value={query['field']}
                  onChange={(text) => filter({ field: text })}
                />
                <FilterText
                  label="is"
                  name="value"
                  value={query['value']}
                  onChange={(text) => filter({ value: text })}
                />
              </div>
              <Found
                key={JSON.stringify([type, query, workspaceId])}
                type={Number(type)}
                query={query}
              />
            </>
          );
        }}
      </Shown>
    </>
  );
}

type Page = AnswerOf<'post', '/v1/objects'>;

/** Asked for once, by a body: it is a search and no resource. */
function Found({
  type,
  query,
}: {
  readonly type: number;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const [found, setFound] = useState<Page | RequestFailed>();
  const { field = 'object_id', value, start } = query;
  useEffect(() => {
    const condition = {
      field,
      ...(value === undefined ? { operator: 'exists' } : { operator: 'eq', value }),
    };
    request(
      post('/v1/objects', {
        query: { limit: 50, start },
        body: { object_type_id: type, filter: { object_attribute: condition } },
      }),
      { workspaceId },
    ).then(setFound, (error: unknown) => {
      if (!(error instanceof RequestFailed)) throw error;
      setFound(error);
    });
  }, []);
  if (found === undefined) return <Waiting />;
  if (found instanceof RequestFailed) return <Failure failure={found} />;
  if (found.ids.length === 0 && found.next === '') return <Empty title="No object matches" />;
  return (
    <>
      <ul className="plain-list">
        {found.ids.map((id) => (
          <li key={id}>
            <Link to={`/objects/${type}/${segment(id)}`} data-row="">
              {visibleText(id)}
            </Link>
          </li>
        ))}
      </ul>
      <PageButtons
        start={start}
        next={found.next}
        onStart={(to) => setQuery({ start: to }, false)}
      />
    </>
  );
}
