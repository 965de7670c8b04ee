/** Request to an endpoint, and its outcome. */
import { isSuccessStatus, type FailureClass } from '@sluice/domain/delivery/delivery-failure';
import type { TlsIdentity } from '@sluice/platform/outgoing/tls-identity';

export interface HttpPost {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** For TLS that differs from the TLS of most requests. */
  readonly tls?: TlsIdentity | undefined;
  /** Whole milliseconds; the client's if absent. */
  readonly timeoutMs?: number;
}

export type HttpOutcome = {
  /** Null if no response head came. */
  readonly status: number | null;
  /** Status line and headers, as text; empty if no head came. */
  readonly head: string;
  /** The first part of the body, as text. */
  readonly body: string;
  readonly durationMs: number;
} & (
  | { readonly outcome: 'response'; readonly status: number }
  | {
      readonly outcome: 'failure';
      readonly failure: Exclude<FailureClass, 'status'>;
      readonly message: string;
    }
);

/** For counting: `delivered`, `status` for an answer that is no success, or the class of the failure. */
export const outcomeOf = (answer: HttpOutcome): 'delivered' | FailureClass => {
  if (answer.outcome === 'failure') return answer.failure;
  return isSuccessStatus(answer.status) ? 'delivered' : 'status';
};
