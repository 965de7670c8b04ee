/**
 * The meaning of one line of a stream: a call like any other, whose faults are issues of this line alone.
 *
 * In a stream with an `id`, events without an id of their own get one made from it and the line's number, so that a
 * line sent again is counted once.
 *
 * Before: `split-lines.ts`. After: `take-stream.ts`.
 */
import type { Parsed } from '@sluice/domain/parsing/parse';
import type { Workspace } from '../auth/authenticate.ts';
import { bodyIssue } from '../calls/call-issues.ts';
import { sizeBytesMaxOf } from '../calls/strict-mode.ts';
import type { Call } from '../calls/calls.ts';
import { readBody, type Body } from '../calls/read-body.ts';
import type { KeyLook } from '../calls/repeated-key.ts';
import { isWhiteSpace, type Line } from './split-lines.ts';

/** Facts that all lines of a stream share. */
export interface LineOrigin {
  readonly call: Call;
  readonly workspace: Workspace;
  readonly isStrict: boolean;
  readonly mayRepeatKey: KeyLook;
  /** The sender's name for the stream; undefined if it has no name. */
  readonly id: string | undefined;
}

/** @param newId - for events without an id, in a stream without one. */
export function readLine(
  origin: LineOrigin,
  line: Line,
  receivedAtMs: number,
  newId: () => string,
): Parsed {
  const { call, workspace, isStrict, mayRepeatKey, id } = origin;
  const body: Body = line.isTooLarge
    ? { outcome: 'too-large' }
    : readBody(line.bytes, undefined, mayRepeatKey);
  if (body.outcome !== 'read') {
    const issue = bodyIssue(body, sizeBytesMaxOf(call, isStrict), 'line');
    return { operations: [], issues: [issue] };
  }
  const context = {
    environmentId: workspace.environmentId,
    receivedAtMs,
    newId: id === undefined ? newId : idsOfLine(id, line.number),
    phoneIdentifies: workspace.phoneIdentifies,
    isStrict,
    source: call.name,
    bodySizeBytes: body.sizeBytes,
    hasEscapes: body.hasEscapes,
    ...(body.faults && { faults: body.faults }),
  };
  return call.parse(body.value, context, []);
}

/** True if a line has only white space, which has no meaning. */
export function isBlank(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (!isWhiteSpace(byte)) return false;
  return true;
}

/** Ids of the events of one line, the same whenever it is sent. */
function idsOfLine(streamId: string, line: number): () => string {
  let madeCount = 0;
  return () => {
    madeCount++;
    return `stream:${streamId}:${line}${madeCount === 1 ? '' : `:${madeCount}`}`;
  };
}
