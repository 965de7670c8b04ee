/** The programs that act for the user, and their end. */
import { own } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { ActionButton } from '../forms/action-button.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';

interface Program {
  readonly id: number;
  readonly name: string;
  readonly environment_id: number | null;
  readonly created_at: string;
  readonly expires_at: string;
  readonly last_used_at: string | null;
  readonly last_used_ip: string | null;
}

export function Programs() {
  const { workspaces } = useSession();
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  const resource = useResource(own<{ programs: readonly Program[] }>('get', '/console/programs'), {
    intervalMs: 30_000,
  });
  return (
    <section className="stack" aria-labelledby="programs">
      <h2 id="programs">Programs that act for you</h2>
      <Shown resource={resource} lines={2}>
        {({ programs }) =>
          programs.length === 0 ? (
            <p>
              None. <code>sluice login</code> in a terminal shows a code, and{' '}
              <Link to="/device">you type it here</Link>.
            </p>
          ) : (
            <ListTable
              caption="Programs that act for you"
              heads={[
                'Program',
                'Workspace',
                'Let in',
                'Last used',
                'Expires',
                { text: 'End it', form: 'unseen' },
              ]}
            >
              {programs.map((each) => (
                <tr key={each.id}>
                  <th scope="row" className="clip">
                    {visibleText(each.name)}
                  </th>
                  <td className="clip">
                    {each.environment_id === null
                      ? 'none'
                      : visibleText(
                          names.get(each.environment_id) ?? `workspace ${each.environment_id}`,
                        )}
                  </td>
                  <td>
                    <Time atMs={Date.parse(each.created_at)} isWhole />
                  </td>
                  <td>
                    {each.last_used_at === null ? (
                      <span className="faint">never</span>
                    ) : (
                      <>
                        <Time atMs={Date.parse(each.last_used_at)} isWhole />{' '}
                        <code>{each.last_used_ip}</code>
                      </>
                    )}
                  </td>
                  <td>
                    <Time atMs={Date.parse(each.expires_at)} isWhole />
                  </td>
                  <td>
                    <ActionButton
                      call={own('delete', `/console/programs/${each.id}`)}
                      done="The program is ended"
                      onDone={() => void resource.reload()}
                    >
                      End
                    </ActionButton>
                  </td>
                </tr>
              ))}
            </ListTable>
          )
        }
      </Shown>
    </section>
  );
}
