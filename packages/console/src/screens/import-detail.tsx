/** One import: its progress, and its rows with problems. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Badge } from '../parts/badge.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { CancelImport, type Import, IMPORT_INTERVAL_MS, ImportProblems } from './imports.tsx';

export const importRoute: Route = {
  pattern: '/imports/:id',
  title: ({ id = '' }) => `Import ${visibleText(id)}`,
  query: {},
  screen: ({ place: { params } }) => <ImportView key={params['id']} id={params['id'] ?? ''} />,
};

function ImportView({ id }: { readonly id: string }) {
  const { workspaceId } = useSession();
  const resource = useResource(get('/v1/imports/{import_id}', { path: { import_id: id } }), {
    workspaceId,
    intervalMs: IMPORT_INTERVAL_MS,
  });
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to="/imports">Imports</Link>
        </p>
        <h1>Import {visibleText(id)}</h1>
      </header>
      <Shown resource={resource} lines={6}>
        {({ import: shown }) => (
          <section className="card" aria-label="The import">
            <div className="row">
              <b>{visibleText(shown.name)}</b>
              <Badge state={shown.state} />
              <span className="grow" />
              <CancelImport row={shown} onChanged={() => void resource.reload()} />
            </div>
            {shown.description !== null && <p>{visibleText(shown.description)}</p>}
            {shown.error !== null && <p className="refusal">{visibleText(shown.error)}</p>}
            <progress max={100} value={shown.percent} aria-label="Part that is read" />
            <dl className="pairs">
              <Pair name="Rows read" text={countText(shown.rows_read)} />
              {shown.state === 'importing' && <Pair name="Pace" text={paceOf(shown)} />}
              <Pair name="Imported" text={countText(shown.rows_imported)} />
              <div>
                <dt>Not imported</dt>
                <dd>
                  <ImportProblems row={shown} kind="errors" count={shown.rows_failed} />
                </dd>
              </div>
              <div>
                <dt>Imported with a change</dt>
                <dd>
                  <ImportProblems row={shown} kind="warnings" count={shown.rows_with_warnings} />
                </dd>
              </div>
              <Pair name="People are named by" text={shown.identifier} />
              <Pair name="Encoding" text={shown.encoding ?? 'not known yet'} />
              <div>
                <dt>Begun</dt>
                <dd>
                  <Time atMs={shown.created_at * 1000} isWhole />
                </dd>
              </div>
              <div>
                <dt>Last progress</dt>
                <dd>
                  <Time atMs={shown.updated_at * 1000} isWhole />
                </dd>
              </div>
            </dl>
          </section>
        )}
      </Shown>
    </>
  );
}

/** Mean speed since the begin, and the time that the rest takes at that speed. */
function paceOf({ rows_read: count, percent, created_at: from, updated_at: to }: Import) {
  const seconds = Math.max(1, to - from);
  const left =
    percent === 0 ? '' : `, ${durationText(((100 - percent) / percent) * seconds * 1_000)} left`;
  return `${countText(Math.round(count / seconds))} rows a second${left}`;
}

const Pair = ({ name, text }: { readonly name: string; readonly text: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{visibleText(text)}</dd>
  </div>
);
