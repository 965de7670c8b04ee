/** Values of a person's attribute in the last 30 days, newest first. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { valueText } from '../sentences/audit-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { OfPerson } from './people.tsx';

export function AttributeHistory({
  path,
  idType,
  name,
}: OfPerson & {
  readonly name: string;
}) {
  const { workspaceId } = useSession();
  const resource = useResource(
    get('/v1/customers/{identifier}/attributes/{name}/history', {
      path: { ...path, name },
      query: { id_type: idType },
    }),
    { workspaceId },
  );
  return (
    <Shown resource={resource} lines={2}>
      {({ history, next }) =>
        history.length === 0 ? (
          <p className="faint">Not changed in the last 30 days.</p>
        ) : (
          <ul className="plain-list" aria-label={`Earlier values of ${visibleText(name)}`}>
            {history.map((change) => (
              <li key={change.activity_id}>
                <Time atMs={Date.parse(change.at)} isWhole />{' '}
                {visibleText(`${valueText(change.from)} → ${valueText(change.to)}`)}
              </li>
            ))}
            {next !== '' && <li className="faint">Older changes are in the activity.</li>}
          </ul>
        )
      }
    </Shown>
  );
}
