/**
 * Writes the changes of the apply step: a statement a kind of change, for any number of rows. A kind without changes
 * needs no statement.
 *
 * The order matters. First, identifiers that a person gives up go, so a merge does not move them before. Then the
 * other identifiers of merged and deleted people move or go, and new ones are written. The issues log and the lanes
 * come last, for all transactions share their rows.
 *
 * Part of step 9 of the walk. Before: `process-commit-batch.ts` applies the operations. After: the commit.
 */
import type { PipelinedTransaction } from '@sluice/database/connection/pipelined-transaction';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import type { LaneTaking, LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { recordLaneMerges } from '@sluice/database/delivery/lane-merges';
import { rememberDeletedIdentifiers } from '@sluice/database/people/deleted-identifiers';
import { writeDevices } from '@sluice/database/people/devices';
import { attachAnonymousEvents, insertEvents } from '@sluice/database/events/events';
import { recordIssues } from '@sluice/database/events/ingestion-issues';
import { writeMessageDeliveries } from '@sluice/database/events/message-deliveries';
import { writeObjects } from '@sluice/database/people/objects';
import {
  deletePeople,
  insertPeople,
  movePeople,
  updatePeople,
} from '@sluice/database/people/people';
import {
  deleteIdentifiers,
  deleteIdentifiersOf,
  suppressIdentifiersOf,
  writeIdentifiers,
} from '@sluice/database/people/person-identifiers';
import { writeRelationships } from '@sluice/database/people/relationships';
import { writeSegmentMembers } from '@sluice/database/people/segment-members';
import { writeVisitors } from '@sluice/database/people/visitors';
import type { StateChanges } from '@sluice/domain/state/loaded-state';

/** Writes all changes. @param taking - as `appendDeliveries` has it. @returns lanes to wake after commit. */
export async function writeChanges(
  { transaction, sending }: PipelinedTransaction,
  changes: StateChanges,
  taking?: LaneTaking,
): Promise<LoggedLane[]> {
  await deleteIdentifiers(sending, changes.identifiers.deleted);
  await movePeople(sending, changes.moves);
  await recordLaneMerges(sending, changes.moves);
  await suppressIdentifiersOf(sending, changes.suppressedPeople);
  await deleteIdentifiersOf(sending, changes.removedPeople);
  await deletePeople(sending, changes.people.deleted);
  await insertPeople(sending, changes.people.inserted);
  await updatePeople(sending, changes.people.updated);
  await writeIdentifiers(sending, changes.identifiers);
  await writeObjects(sending, changes.objects);
  await writeRelationships(sending, changes.relationships);
  await writeDevices(sending, changes.devices);
  await writeSegmentMembers(sending, changes.segmentMembers);
  await writeMessageDeliveries(sending, changes.messageDeliveries);
  await rememberDeletedIdentifiers(sending, changes.deletedIdentifiers);
  await writeVisitors(sending, changes.visitors);
  await attachAnonymousEvents(sending, changes.attachments);
  await insertEvents(sending, changes.events);
  await recordIssues(transaction, changes.issues);
  return appendDeliveries(transaction, changes.reports, taking);
}
