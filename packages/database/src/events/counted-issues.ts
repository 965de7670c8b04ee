/**
 * Issues of one transaction, counted by the key of the issues log: an upsert may not meet the same key twice.
 *
 * Used by `ingestion-issues.ts` and `issue-field-bounds.ts`.
 */
import type { IssueRow } from '@sluice/domain/state/loaded-state';
import { toStorableText } from '@sluice/domain/values/storable-text';

const FIELD_LENGTH_MAX = 200;
const SAMPLE_LENGTH_MAX = 200;
const MESSAGE_LENGTH_MAX = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface CountedIssue {
  readonly environmentId: number;
  readonly dayMs: number;
  readonly code: string;
  readonly source: string;
  readonly field: string;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  message: string;
  sample: string | null;
  credentialId: number | null;
}

/** One for each key. */
export function countIssues(issues: readonly IssueRow[]): CountedIssue[] {
  const counted = new Map<string, CountedIssue>();
  for (const { environmentId, source, issue, count, atMs } of issues) {
    const dayMs = Math.floor(atMs / DAY_MS) * DAY_MS;
    const field = fieldOf(issue.field);
    const message = storable(issue.message, MESSAGE_LENGTH_MAX);
    const sample = issue.sample === undefined ? null : storable(issue.sample, SAMPLE_LENGTH_MAX);
    const { code, credentialId = null } = issue;
    addIssue(counted, {
      ...{ environmentId, dayMs, code, source, field, count, firstAtMs: atMs, lastAtMs: atMs },
      ...{ message, sample, credentialId },
    });
  }
  return [...counted.values()];
}

/** Adds to the issue with the same key. */
export function addIssue(counted: Map<string, CountedIssue>, issue: CountedIssue): void {
  const { environmentId, dayMs, code, source, field } = issue;
  const key = JSON.stringify([environmentId, dayMs, code, source, field]);
  const known = counted.get(key);
  if (known) {
    known.count += issue.count;
    known.firstAtMs = Math.min(known.firstAtMs, issue.firstAtMs);
    known.lastAtMs = Math.max(known.lastAtMs, issue.lastAtMs);
    known.message = issue.message;
    known.sample = issue.sample;
    known.credentialId = issue.credentialId ?? known.credentialId;
  } else counted.set(key, issue);
}

/** Positions in lists are one field: `batch.17.event` counts as `batch.*.event`. */
function fieldOf(field: string | null): string {
  return storable(field ?? '', FIELD_LENGTH_MAX)
    .split('.')
    .map((part) => (/^\d+$/.test(part) ? '*' : part))
    .join('.');
}

function storable(text: string, lengthMax: number): string {
  return toStorableText(text.slice(0, lengthMax));
}
