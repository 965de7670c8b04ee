/**
 * Faults of an unread body, and records of issues.
 *
 * Beside `accept.ts` (step 5), for all use cases that take calls.
 */
import { isJsonObject } from '@sluice/domain/values/json';
import type { Issue } from '@sluice/domain/operations/issue';
import type { RecordIssue } from '@sluice/domain/operations/operation';
import type { Workspace } from '../auth/authenticate.ts';
import type { Call } from './calls.ts';
import type { Body } from './read-body.ts';

/** The body, unless it is larger than the limit. Strict mode has a lower limit than the one that bodies are read with. */
export const withinSize = (body: Body, sizeBytesMax: number): Body =>
  body.outcome === 'read' && body.sizeBytes > sizeBytesMax
    ? { outcome: 'too-large', callCount: body.inTurns?.items.count ?? itemCountOf(body.value) }
    : body;

/** Of a batch; of any other call one. */
function itemCountOf(value: unknown): number {
  const { batch } = isJsonObject(value) ? value : {};
  return Array.isArray(batch) ? batch.length : 1;
}

/** The fault of a body that could not be read. `subject`: its sender's word for it. */
export function bodyIssue(
  body: Exclude<Body, { outcome: 'read' }>,
  sizeBytesMax: number,
  subject = 'request body',
): Issue {
  switch (body.outcome) {
    case 'too-large': {
      const { callCount = 1 } = body;
      const lost =
        callCount > 1
          ? `; the ${callCount} calls in it are lost. Send them again in smaller bodies`
          : '';
      const message = `${tooLargeMessage(body, sizeBytesMax, subject)}${lost}`;
      return { code: 'too_large', field: null, message, callCount };
    }
    case 'invalid-encoding':
      return { code: 'invalid_encoding', field: null, message: body.message };
    case 'invalid-json':
      return { code: 'invalid_json', field: null, message: body.message };
  }
}

function tooLargeMessage(
  { besideItemsMax, valueCountMax }: Extract<Body, { outcome: 'too-large' }>,
  sizeBytesMax: number,
  subject: string,
): string {
  if (besideItemsMax !== undefined)
    return `the ${subject} without its items is larger than ${besideItemsMax / 1024} KB`;
  if (valueCountMax !== undefined) return `the ${subject} has more than ${valueCountMax} values`;
  return `the ${subject} is larger than ${sizeBytesMax / 1024} KB`;
}

/** So that the log has the credential of the calls. */
export const withCredential = (issue: Issue, { credentialId }: Workspace): Issue =>
  credentialId === undefined ? issue : { ...issue, credentialId };

/**
 * Kinds of one call that are recorded with their field. Each is a row of the log, and a batch of 60 KB of gzip may bring
 * 50,000 of them: the rest are counted by their code alone.
 */
const KIND_COUNT_MAX = 100;

/** One operation a kind of issue, with the count of calls: a batch of 2,500 bad items is one row to write, not 2,500. */
export function recordIssues(
  call: Call,
  workspace: Workspace,
  receivedAtMs: number,
  issues: readonly Issue[],
): RecordIssue[] {
  const counted = new Map<string, { issue: Issue; count: number }>();
  for (const issue of issues) {
    const kind = `${issue.code} ${issue.field ?? ''}`;
    const isBeyond = counted.size >= KIND_COUNT_MAX && !counted.has(kind);
    const key = isBeyond ? issue.code : kind;
    const same = counted.get(key);
    const { callCount = 1, ...recorded } = issue;
    if (same) same.count += callCount;
    else {
      const known = isBeyond ? { ...recorded, field: null } : recorded;
      counted.set(key, { issue: known, count: callCount });
    }
  }
  return [...counted.values()].map(({ issue, count }) => ({
    type: 'issue.record',
    environmentId: workspace.environmentId,
    receivedAtMs,
    issue: withCredential(issue, workspace),
    source: call.name,
    count,
  }));
}
