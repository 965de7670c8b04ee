/** The latest entries of the audit log, with links to their values. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { segment } from '../routing/location.ts';
import { Link } from '../routing/router.tsx';
import { actorText } from '../sentences/audit-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { Shown } from './states.tsx';
import { Time } from './time.tsx';

const LISTED_COUNT = 5;
const INTERVAL_MS = 5_000;

export function LatestChanges({
  title,
  credentialId,
}: {
  readonly title: string;
  /** Absent: made with any key, and by anybody. */
  readonly credentialId?: number;
}) {
  const { account } = useSession();
  const resource = useResource(
    get('/v1/accounts/{account_id}/audit_logs', {
      path: { account_id: account.id },
      query: { limit: LISTED_COUNT, credential_id: credentialId },
    }),
    { intervalMs: INTERVAL_MS },
  );
  return (
    <section aria-labelledby="latest-changes">
      <h2 id="latest-changes">{title}</h2>
      <Shown resource={resource} lines={LISTED_COUNT}>
        {({ audit_logs: entries }) =>
          entries.length === 0 ? (
            <p className="faint">There was no change.</p>
          ) : (
            <ul className="plain-list">
              {entries.map((entry) => (
                <li key={entry.id}>
                  <Link to={`/audit/${segment(String(entry.id))}`} data-row="">
                    {entry.object_type.replaceAll('_', ' ')}{' '}
                    {visibleText(entry.object_name ?? entry.object_id)}
                  </Link>{' '}
                  {entry.action} by {visibleText(actorText(entry.actor))},{' '}
                  <Time atMs={Date.parse(entry.occurred_at)} isWhole />
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </section>
  );
}
