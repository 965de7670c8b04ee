/** Calls of the API and of intake, and deliveries, by group. Also the calls with a text in them. */
import { FilterText } from '../forms/filter-text.tsx';
import { Empty } from '../parts/states.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { callsOf, type DescribedCall, type Document, slugOf } from './described-call.ts';
import { WithDocument } from './with-document.tsx';

export const referenceListRoute: Route = {
  pattern: '/docs/:tag',
  title: ({ tag }) => `Reference: ${tag}`,
  query: { find: /^[^]{1,100}$/ },
  screen: ({ place: { params, query } }) => (
    <WithDocument>
      {(document) => (
        <CallList document={document} tag={params['tag'] ?? ''} find={query['find']} />
      )}
    </WithDocument>
  ),
};

/** Calls of one tag, calls with a text in them, or all by their tags (`all`). */
function CallList({
  document,
  tag,
  find,
}: {
  readonly document: Document;
  readonly tag: string;
  readonly find: string | undefined;
}) {
  const setQuery = useSetQuery();
  const wanted = find?.toLowerCase();
  const fits = ({ method, path, operation }: DescribedCall): boolean =>
    wanted === undefined ||
    `${method} ${path} ${operation.summary ?? ''} ${operation.operationId}`
      .toLowerCase()
      .includes(wanted);
  const calls = callsOf(document);
  const shown = calls.filter((each) => (tag === 'all' || slugOf(each.tag) === tag) && fits(each));
  const byTag = Map.groupBy(shown, (each) => each.tag);
  const tags = [...new Set(calls.map((each) => each.tag))];
  return (
    <>
      <header className="title">
        <h1>Reference</h1>
        <p className="lead">
          As one page without scripts: <a href="/docs/plain">/docs/plain</a>; as OpenAPI 3.1:{' '}
          <a href="/openapi.json">/openapi.json</a>. <a href="/docs/pages">Guides and operations</a>
        </p>
      </header>
      <div className="filters">
        <FilterText
          label="Find"
          name="find"
          value={find}
          onChange={(text) => setQuery({ find: text })}
        />
      </div>
      <nav aria-label="Groups of calls" className="tabs">
        {['all', ...tags].map((each) => (
          <Link
            key={each}
            to={`/docs/${slugOf(each)}`}
            className="button"
            {...(slugOf(each) === tag && { 'aria-current': 'page' as const })}
          >
            {each}
          </Link>
        ))}
      </nav>
      {shown.length === 0 && <Empty title="No call fits" />}
      {[...byTag].map(([name, group]) => (
        <section key={name} aria-labelledby={`tag-${slugOf(name)}`}>
          <h2 id={`tag-${slugOf(name)}`}>{name}</h2>
          <ul className="plain-list">
            {group.map(({ method, path, isDelivery, operation }) => (
              <li key={operation.operationId}>
                <Link to={`/docs/${slugOf(name)}/${operation.operationId}`} data-row="">
                  {operation.summary ?? operation.operationId}
                </Link>{' '}
                <code>{isDelivery ? path : `${method} ${path}`}</code>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}
