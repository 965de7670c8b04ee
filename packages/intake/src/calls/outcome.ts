/** What becomes of a call, and who is told. `accept.ts` decides it, `answer.ts` maps it to a status. */
import type { Issue } from '@sluice/domain/operations/issue';
import type { RateStanding } from '../auth/rate-limit.ts';

export type Outcome =
  | { readonly outcome: 'accepted' }
  /** Some items of a Track v2 batch were refused; the others are taken. */
  | { readonly outcome: 'partly-accepted'; readonly issues: readonly Issue[] }
  | { readonly outcome: 'rejected'; readonly issues: readonly Issue[] }
  /** `message` where it is not that the credentials are missing or not in force. */
  | { readonly outcome: 'unauthorized'; readonly message?: string }
  | { readonly outcome: 'rate-limited' }
  | { readonly outcome: 'overloaded'; readonly retryAfterSeconds: number };

/** `standing` where the workspace has a limit. */
export type AnswerCall = (outcome: Outcome, standing?: RateStanding) => void;
