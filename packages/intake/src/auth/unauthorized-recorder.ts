/**
 * Refused authentications, counted in memory and recorded once a second.
 *
 * Anybody can cause them, so they must not each cost a row: a flood of a million becomes one issue with a count. The
 * price: a crash forgets at most a second of them.
 */
import type { Operation } from '@sluice/domain/operations/operation';

/** Issues of credentials that name no workspace at all. */
const NO_ENVIRONMENT_ID = 0;

export class UnauthorizedRecorder {
  #counts = new Map<string, { environmentId: number; source: string; count: number }>();

  /** `environmentId` where the site id was one of ours. */
  record(source: string, environmentId = NO_ENVIRONMENT_ID): void {
    const key = `${environmentId} ${source}`;
    const counted = this.#counts.get(key);
    if (counted) counted.count++;
    else this.#counts.set(key, { environmentId, source, count: 1 });
  }

  /** Takes what was counted since the last call. */
  take(receivedAtMs: number): Operation[] {
    const counted = [...this.#counts.values()];
    this.#counts.clear();
    return counted.map(({ environmentId, source, count }) => ({
      type: 'issue.record',
      environmentId,
      receivedAtMs,
      issue: {
        code: 'authentication_failed',
        field: null,
        message: 'the credentials of the call are missing or not in force',
      },
      source,
      count,
    }));
  }
}
