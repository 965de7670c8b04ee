/** Tells whoever watches a workspace of each attempt to deliver (`GET /v1/stream` of the API). */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import type { LaneKey } from '@sluice/database/delivery/lanes';
import type { Json } from '@sluice/domain/values/json';
import { lineOfAttempt, type TailTeller } from '@sluice/domain/operations/tail';

/** Costs nothing where nobody watches. */
export function tellAttempt(
  tail: TailTeller | undefined,
  lane: LaneKey,
  { eventType, body }: LoggedDelivery,
  ended: AttemptRecord | undefined,
): void {
  if (!ended || !tail?.isWatched(lane.environmentId)) return;
  const attempt = { ...ended, ...lane, eventType, body: JSON.parse(body) as Json };
  const atMs = ended.startedAtMs + Math.round(ended.durationMs);
  tail.tell(lane.environmentId, [lineOfAttempt(attempt, atMs)]);
}
