/**
 * Counts of refused calls, recorded once a second.
 *
 * Strict mode and the Track API refuse them with an answer to their sender; the workspace's owner finds them in the
 * issues log too. A refused call was not taken, so it may not cost as much as a taken one: a million of a kind are one
 * row with a count. Beyond a number of kinds a second the field is not recorded. The price: a crash forgets at most a
 * second of them.
 *
 * Before: `accept.ts`, `stream/take-stream.ts`. After: `commit/batcher.ts`.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { RecordIssue } from '@sluice/domain/operations/operation';
import type { Workspace } from '../auth/authenticate.ts';
import { withCredential } from './call-issues.ts';

/** Of all workspaces in a second: a commit batch or two. */
const KIND_COUNT_MAX = 1_000;

interface CountedRefusal {
  readonly workspace: Workspace;
  readonly source: string;
  /** The latest. */
  issue: Issue;
  count: number;
}

export class RefusalRecorder {
  readonly #counts = new Map<string, CountedRefusal>();

  /** Counts the issues of one call. */
  record(workspace: Workspace, source: string, issues: readonly Issue[]): void {
    for (const issue of issues) this.#count(workspace, source, issue);
  }

  /** Takes the counts since the last call. */
  take(receivedAtMs: number): RecordIssue[] {
    const counted = [...this.#counts.values()];
    this.#counts.clear();
    return counted.map(({ workspace, source, issue, count }) => ({
      type: 'issue.record',
      environmentId: workspace.environmentId,
      receivedAtMs,
      issue: withCredential(issue, workspace),
      source,
      count,
    }));
  }

  #count(workspace: Workspace, source: string, { callCount: count = 1, ...issue }: Issue): void {
    const kind = `${workspace.environmentId} ${workspace.credentialId ?? ''} ${source} ${issue.code}`;
    const key = `${kind} ${issue.field ?? ''}`;
    const known = this.#counts.get(key) ?? this.#counts.get(kind);
    if (known && (this.#counts.has(key) || this.#counts.size >= KIND_COUNT_MAX)) {
      known.issue = this.#counts.has(key) ? issue : { ...issue, field: null };
      known.count += count;
    } else if (this.#counts.size < KIND_COUNT_MAX) {
      this.#counts.set(key, { workspace, source, issue, count });
    } else {
      // As many again at most: kinds without their field are few.
      this.#counts.set(kind, { workspace, source, issue: { ...issue, field: null }, count });
    }
  }
}
