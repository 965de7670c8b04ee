/** Common parts of the calls of Track v1 and v2. Pipelines shares others. */
import { readPersonIdentifiers } from '../parsing/identifiers.ts';
import type { JsonObject } from '../values/json.ts';
import { CallDraft, type ParseContext } from '../parsing/parse.ts';
import { readInstantMs } from '../parsing/timestamps.ts';

/** Takes a merge of v1 or v2: `primary` and `secondary`, each by id, email or svc_id. */
export function takeMerge(draft: CallDraft, body: JsonObject): void {
  const kinds = { mayBePhone: false, mayBeAnonymous: false };
  const primary = readPersonIdentifiers(draft, body.primary, 'primary', kinds);
  const secondary = readPersonIdentifiers(draft, body.secondary, 'secondary', kinds);
  if (primary === undefined || secondary === undefined) return;
  const { environmentId, receivedAtMs } = draft.context;
  draft.take({ type: 'person.merge', environmentId, receivedAtMs, primary, secondary });
}

/** Unix milliseconds of Track's `timestamp`, else of the receipt. */
export function readTimestamp(draft: CallDraft, body: JsonObject): number {
  return (
    readInstantMs(draft, body.timestamp, 'timestamp', 'the time of receipt is used') ??
    draft.context.receivedAtMs
  );
}

/** For calls whose texts come from the path: facts about the body's texts do not hold for those. */
export function pathDraft(context: ParseContext): CallDraft {
  return new CallDraft({ ...context, hasEscapes: true }, 'track');
}
