/**
 * Counts of refused calls, recorded once a second.
 *
 * Strict mode and the Track API refuse them with an answer to their sender; the workspace's owner finds them in the
 * issues log too. A refused call was not taken, so it may not cost as much as a taken one: a million of a kind are one
 * row with a count. A kind is a workspace, a key, a call and a code. It has a part of its own: its first fields of a second
 * are recorded, however much others send. Beyond its part the field is not recorded. The price: a crash forgets at most a second
 * of them.
 *
 * Before: `accept.ts`, `stream/take-stream.ts`. After: `commit/batcher.ts`.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { RecordIssue } from '@sluice/domain/operations/operation';
import type { Workspace } from '../auth/authenticate.ts';
import { withCredential } from './call-issues.ts';

/** Of a kind in a second, however much others send. */
const FIELDS_OF_KIND_MIN = 2;
/** Of a kind in a second, while its workspace and all others have few. */
const FIELDS_OF_KIND_MAX = 20;
/** Of a workspace in a second; beyond it a kind has `FIELDS_OF_KIND_MIN`. */
const FIELDS_OF_WORKSPACE_MAX = 200;
/** Of all workspaces in a second, likewise: a commit batch or two. */
const FIELDS_MAX = 1_000;

interface CountedRefusal {
  readonly workspace: Workspace;
  readonly source: string;
  /** The latest. */
  issue: Issue;
  count: number;
}

export class RefusalRecorder {
  readonly #counts = new Map<string, CountedRefusal>();
  /** Fields that are in the counts: by kind, and by workspace. */
  readonly #fieldCounts = new Map<string | number, number>();
  #fieldCount = 0;

  /** Counts the issues of one call. */
  record(workspace: Workspace, source: string, issues: readonly Issue[]): void {
    for (const issue of issues) this.#count(workspace, source, issue);
  }

  /** Takes the counts since the last call. */
  take(receivedAtMs: number): RecordIssue[] {
    const counted = [...this.#counts.values()];
    this.#counts.clear();
    this.#fieldCounts.clear();
    this.#fieldCount = 0;
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
    const { environmentId, credentialId = '' } = workspace;
    const kind = `${environmentId} ${credentialId} ${source} ${issue.code}`;
    const key = issue.field === null ? kind : `${kind} ${issue.field}`;
    const known = this.#counts.get(key);
    if (known) {
      known.issue = issue;
      known.count += count;
    } else if (key === kind || this.#takeField(kind, environmentId)) {
      this.#counts.set(key, { workspace, source, issue, count });
    } else {
      // As many again at most: kinds without their field are few.
      this.#count(workspace, source, { ...issue, field: null, callCount: count });
    }
  }

  /** True if the kind may have a further field. */
  #takeField(kind: string, environmentId: number): boolean {
    const ofKind = this.#fieldCounts.get(kind) ?? 0;
    const ofWorkspace = this.#fieldCounts.get(environmentId) ?? 0;
    const isBeyond = ofWorkspace >= FIELDS_OF_WORKSPACE_MAX || this.#fieldCount >= FIELDS_MAX;
    if (ofKind >= (isBeyond ? FIELDS_OF_KIND_MIN : FIELDS_OF_KIND_MAX)) return false;
    this.#fieldCounts.set(kind, ofKind + 1).set(environmentId, ofWorkspace + 1);
    this.#fieldCount++;
    return true;
  }
}
