/**
 * Track v1 membership of manual segments (`ingestion-conventions.md` §1.1). Step 4 of the walk, like
 * `track-v1.ts`. One kind of identifier for the whole list.
 */
import {
  readPositiveInteger,
  readRequiredEmail,
  readRequiredText,
} from '../parsing/identifiers.ts';
import { ID_SIZE_BYTES_MAX, SEGMENT_MEMBER_COUNT_MAX } from '../operations/limits.ts';
import type { ChangeSegment, PersonIdentifier } from '../operations/operation.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import {
  CallDraft,
  fieldIn,
  isBodyObject,
  type ParseContext,
  type Parsed,
} from '../parsing/parse.ts';

/**
 * `POST /api/v1/segments/{id}/add_customers` and `…/remove_customers`. `idType` is the query parameter;
 * empty or absent means `id`.
 */
export function parseSegmentChange(
  action: ChangeSegment['action'],
  segmentId: string,
  idType: string | undefined,
  body: unknown,
  context: ParseContext,
): Parsed {
  const draft = new CallDraft(context, 'track');
  const segment = readPositiveInteger(draft, segmentId, 'segment_id');
  const kind = kindOf(idType);
  if (kind === undefined)
    draft.refuse('invalid', 'id_type', 'id_type must be id, email or svc_id', idType);
  if (!isBodyObject(draft, body)) return draft.finish();
  const people = readMembers(draft, body.ids, kind ?? 'id');
  const { environmentId, receivedAtMs } = context;
  if (segment !== undefined && people !== undefined) {
    draft.take({
      type: 'segment.change',
      environmentId,
      receivedAtMs,
      segmentId: segment,
      action,
      people,
    });
  }
  return draft.finish();
}

function kindOf(idType: string | undefined): PersonIdentifier['kind'] | undefined {
  switch (idType) {
    case undefined:
    case '':
    case 'id':
      return 'id';
    case 'email':
      return 'email';
    case 'cio_id':
    case 'svc_id':
      return 'svc_id';
    default:
      return undefined;
  }
}

function readMembers(
  draft: CallDraft,
  ids: unknown,
  kind: PersonIdentifier['kind'],
): PersonIdentifier[] | undefined {
  if (!Array.isArray(ids)) {
    if (isAbsent(ids)) draft.refuse('required', 'ids', 'ids is required');
    else draft.refuse('invalid', 'ids', 'ids must be an array', ids);
    return undefined;
  }
  if (ids.length === 0 || ids.length > SEGMENT_MEMBER_COUNT_MAX) {
    draft.refuse(
      'invalid',
      'ids',
      `ids must hold 1 to ${SEGMENT_MEMBER_COUNT_MAX} strings; it holds ${ids.length}`,
    );
    return undefined;
  }
  const people: PersonIdentifier[] = [];
  for (let index = 0; index < ids.length; index++) {
    const field = fieldIn('ids', index);
    const value =
      kind === 'email'
        ? readRequiredEmail(draft, ids[index], field)
        : readRequiredText(draft, ids[index], field, ID_SIZE_BYTES_MAX);
    if (value !== undefined) people.push({ kind, value });
  }
  return people;
}
