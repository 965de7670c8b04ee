/** Objects that a person is related to, in pages. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { PageButtons } from '../lists/page-buttons.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { segment } from '../routing/location.ts';
import { Link, useSetQuery } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import type { OfPerson } from './people.tsx';

export function Relationships({
  path,
  idType,
  start,
}: OfPerson & {
  readonly start: string | undefined;
}) {
  const { workspaceId } = useSession();
  const setQuery = useSetQuery();
  const resource = useResource(
    get('/v1/customers/{identifier}/relationships', { path, query: { id_type: idType, start } }),
    { workspaceId },
  );
  return (
    <Shown resource={resource}>
      {({ svc_relationships: relationships, next }) => (
        <>
          {relationships.length === 0 && <Empty title="Related to no object" />}
          <dl className="pairs">
            {relationships.map(({ object_type_id: type, identifiers, attributes }) => (
              <div key={`${type} ${identifiers.object_id}`}>
                <dt>type {type}</dt>
                <dd>
                  <Link to={`/objects/${type}/${segment(identifiers.object_id)}`} data-row="">
                    {visibleText(identifiers.object_id)}
                  </Link>{' '}
                  {Object.keys(attributes).length > 0 && visibleText(JSON.stringify(attributes))}
                </dd>
              </div>
            ))}
          </dl>
          <PageButtons
            start={start}
            next={next}
            names={['First', 'Next']}
            onStart={(to) => setQuery({ start: to }, false)}
          />
        </>
      )}
    </Shown>
  );
}
