/** Copies a link to the list as it is: a duration becomes two times, and the workspace is named. */
import { useReach } from '../client/session.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { writeQuery } from '../routing/location.ts';
import { useRouting } from '../routing/router.tsx';
import { linkedQuery, type RangeForm } from '../routing/time-range.ts';

export function RangeLink({
  form,
  nowMs,
  readAtMs,
}: {
  readonly form: RangeForm;
  /** The present as the list began. */
  readonly nowMs: number;
  /** Of the rows that are shown; 0 before the first. */
  readonly readAtMs: number;
}) {
  const { workspaceId, isPortal } = useReach();
  const { place } = useRouting();
  const link = writeQuery({
    ...linkedQuery(place.query, nowMs, Math.max(nowMs, readAtMs), form),
    // The first workspace of another reader may be another one.
    ...(!isPortal && { workspace: String(workspaceId) }),
  });
  return <CopyButton text={`${location.origin}${location.pathname}${link}`} label="Copy link" />;
}
