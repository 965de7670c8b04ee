/** Calls with unknown keys, of the whole installation. They belong to no workspace, so only its operator sees them. */
import type { AnswerOf } from '../client/operations.ts';
import { Link } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { ListTable } from './list-table.tsx';
import { Time } from './time.tsx';

/** Counted by day, so `first_at` is up to 48 hours ago. Null: they cannot be read. */
export type UnknownKeys = AnswerOf<'get', '/v1/fleet'>['unknown_keys'];

export function UnknownKeyList({ unknownKeys }: { readonly unknownKeys: UnknownKeys }) {
  const { count = 0, first_at: firstAt = null, latest = [] } = unknownKeys ?? {};
  return (
    <section aria-labelledby="unknown-keys">
      <h2 id="unknown-keys">Calls with an unknown key</h2>
      {unknownKeys === null ? (
        <p className="faint">These calls cannot be read. A node of the database may be away.</p>
      ) : firstAt === null ? (
        <p className="faint">No call of the last 24 hours had an unknown key.</p>
      ) : (
        <>
          <p>
            {countText(count)} {count === 1 ? 'call' : 'calls'} since{' '}
            <Time atMs={Date.parse(firstAt)} isWhole />. Such calls are not stored; permissive mode
            answers 200. Each row has the last characters of its last key. Compare them with the{' '}
            <Link to="/keys">keys of your workspaces</Link>.
          </p>
          <ListTable
            caption="Calls with an unknown key, the latest first"
            heads={['Source', 'Key, or site id, ends in', { text: 'Count', form: 'right' }, 'Last']}
          >
            {latest.map((each) => (
              <tr key={each.source}>
                <th scope="row">{visibleText(each.source)}</th>
                <td>{each.hint === null ? 'none' : <code>…{visibleText(each.hint)}</code>}</td>
                <td className="number right">{countText(each.count)}</td>
                <td className="number">
                  <Time atMs={Date.parse(each.last_at)} isWhole />
                </td>
              </tr>
            ))}
          </ListTable>
        </>
      )}
    </section>
  );
}
