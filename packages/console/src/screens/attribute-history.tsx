/** Values of a person's attribute in the last 30 days, newest first. */
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { valueText } from '../sentences/audit-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

interface AttributeChange {
  readonly at: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly activity_id: string;
}

export function AttributeHistory({
  base,
  idType,
  name,
}: {
  readonly base: string;
  readonly idType: string;
  readonly name: string;
}) {
  const { workspaceId } = useSession();
  const resource = useResource<{
    readonly history: readonly AttributeChange[];
    readonly next: string;
  }>(`${base}/attributes/${segment(name)}/history?${idType}`, { workspaceId });
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
