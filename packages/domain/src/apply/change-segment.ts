/** Membership of manual segments (`ingestion-conventions.md` §1.1). Identifiers without a person are skipped. */
import type { ChangeSegment } from '../operations/operation.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Adds people to a segment or removes them; a second time it has no effect. */
export function changeSegment(set: WorkingSet, operation: ChangeSegment): void {
  const { environmentId, segmentId, receivedAtMs } = operation;
  for (const identifier of operation.people) {
    const resolution = set.directory.resolve(environmentId, identifier);
    if (resolution.outcome !== 'found') continue;
    const member = {
      environmentId,
      segmentId,
      personId: resolution.person.personId,
      addedAtMs: receivedAtMs,
    };
    if (operation.action === 'add') set.segmentMembers.set(member);
    else set.segmentMembers.deleteUnseen(member);
  }
}
