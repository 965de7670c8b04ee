/** Files of events: their progress, the problems of their rows, and a new import. */
import { useEffect, useState } from 'react';
import { get, getFile, post } from '../client/calls.ts';
import type { Described } from '../client/operations.ts';
import { request } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { useWork } from '../forms/use-work.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, type Route, useSetQuery } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { ImportUpload } from './import-upload.tsx';

export type Import = Described<'Import'>;

export const IMPORT_INTERVAL_MS = 1_000;
const ENDED = ['imported', 'failed', 'canceled'];

export const importsRoute: Route = {
  pattern: '/imports',
  title: () => 'Imports',
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <Imports start={query['start']} />,
};

function Imports({ start }: { readonly start: string | undefined }) {
  const { workspaceId, capabilities } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(get('/v1/imports', { query: { limit: 50, start } }), {
    workspaceId,
    intervalMs: IMPORT_INTERVAL_MS,
  });
  return (
    <>
      <header className="title">
        <h1>Imports</h1>
        <p className="lead">
          Events from a CSV: the first line names the columns, _svc_name and _svc_customer_id among
          them.
        </p>
      </header>
      {capabilities.includes('workspace.manage') && (
        <ImportUpload onUploaded={() => void resource.reload()} />
      )}
      <Shown resource={resource}>
        {({ imports, next }) =>
          imports.length === 0 ? (
            <Empty title="There is no import yet" />
          ) : (
            <>
              <ListTable
                caption="Imports, the newest first"
                heads={[
                  'Name',
                  'State',
                  'Read',
                  'Imported',
                  'Not imported',
                  'Begun',
                  { text: 'Cancel', form: 'unseen' },
                ]}
              >
                {imports.map((each) => (
                  <ImportRow key={each.id} row={each} onChanged={() => void resource.reload()} />
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
    </>
  );
}

function ImportRow({ row, onChanged }: { readonly row: Import; readonly onChanged: () => void }) {
  const isEnded = ENDED.includes(row.state);
  return (
    <tr>
      <th scope="row">
        <Link to={`/imports/${row.id}`} data-row="">
          {visibleText(row.name)}
        </Link>
      </th>
      <td>
        <Badge state={row.state} />
        {row.error !== null && <div className="refusal">{visibleText(row.error)}</div>}
      </td>
      <td>
        {countText(row.rows_read)}
        {!isEnded && (
          <>
            {' '}
            <progress max={100} value={row.percent} aria-label={`${row.name}: part that is read`} />
          </>
        )}
      </td>
      <td>{countText(row.rows_imported)}</td>
      <td>
        <ImportProblems row={row} kind="errors" count={row.rows_failed} />
        {row.rows_with_warnings > 0 && (
          <ImportProblems row={row} kind="warnings" count={row.rows_with_warnings} />
        )}
      </td>
      <td>
        <Time atMs={row.created_at * 1000} isWhole />
      </td>
      <td>
        <CancelImport row={row} onChanged={onChanged} />
      </td>
    </tr>
  );
}

/** A button while the import goes on. */
export function CancelImport({
  row,
  onChanged,
}: {
  readonly row: Import;
  readonly onChanged: () => void;
}) {
  if (ENDED.includes(row.state)) return null;
  return (
    <ActionButton
      call={post('/v1/imports/{import_id}/cancel', { path: { import_id: row.id } })}
      capability="workspace.manage"
      done={`${row.name} is cancelled`}
      onDone={onChanged}
    >
      Cancel
    </ActionButton>
  );
}

/** The rows as CSV, each with its problem. By a call, since a link cannot name the workspace. */
export function ImportProblems({
  row,
  kind,
  count,
}: {
  readonly row: Import;
  readonly kind: 'errors' | 'warnings';
  readonly count: number;
}) {
  const { workspaceId } = useSession();
  const [url, setUrl] = useState<string>();
  // The browser keeps the bytes of an address until it is revoked.
  useEffect(() => (url === undefined ? undefined : () => URL.revokeObjectURL(url)), [url]);
  const { isRunning, problem, run } = useWork();
  const fetchThem = (): void =>
    void run(async () => {
      const file = await request(
        getFile(`/v1/imports/{import_id}/${kind}`, { path: { import_id: row.id } }),
        { workspaceId },
      );
      setUrl(URL.createObjectURL(file));
    });
  if (count === 0) return '0';
  return (
    <div>
      {url === undefined ? (
        <button type="button" className="small" disabled={isRunning} onClick={fetchThem}>
          {countText(count)} {kind}
        </button>
      ) : (
        <a href={url} download={`import-${row.id}-${kind}.csv`}>
          Download {countText(count)} {kind}
        </a>
      )}
      {problem !== undefined && <span className="refusal">{problem}</span>}
    </div>
  );
}
