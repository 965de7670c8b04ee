/**
 * Connections that intake cuts without an answer, counted by reason.
 *
 * A cut sender gets no answer, so only the counts and the log show the reason to the operator. The counts are for
 * `/metrics`, and the summary for the log (`cut-log.ts`).
 *
 * Used by `server.ts`, `http/exchange.ts` and `stream/stream-exchange.ts`.
 */
import { callerNetwork } from '@sluice/domain/delivery/network-address';

/** Reasons of a cut, as `/metrics` and the log name them. */
const CUT_REASONS = [
  /** As many connections as allowed are open. */
  'too_many_connections',
  /** It brought more chunks than a client makes (`body/body-reads.ts`). */
  'too_many_chunks',
  /** All streams together held too many bytes, and this one held the most (`stream/held-bytes.ts`). */
  'too_many_bytes',
  /** No whole head came, or no further chunk of a call. */
  'silent',
  /** Its answer was not read in time. */
  'unread_answer',
] as const;

export type CutReason = (typeof CUT_REASONS)[number];

/** A request on the connection, or the connection itself. It is valid until it is closed. */
export interface CutHandle {
  /** Of the client; an IPv6 address in eight groups. */
  getRemoteAddressAsText(): ArrayBuffer;
  close(): unknown;
}

/** Cuts since the last line of the log. Silent connections are not in it: a browser opens some in advance. */
interface CutSummary {
  readonly count: number;
  readonly countsByReason: Readonly<Partial<Record<CutReason, number>>>;
  readonly last: {
    readonly reason: CutReason;
    /** Of IPv6 its network of 64 bits. */
    readonly address: string;
    /** Absent if it had shown no credentials in force. */
    readonly environmentId?: number;
  };
}

/** Of one process. */
export class CutConnections {
  /** Since the start. */
  readonly counts = new Map<CutReason, number>(CUT_REASONS.map((reason) => [reason, 0]));
  #summary: CutSummary | undefined;

  /**
   * Closes the connection.
   *
   * @param environmentId - the workspace whose credentials it has shown; 0 without one.
   */
  cut(handle: CutHandle, reason: CutReason, environmentId = 0): void {
    this.counts.set(reason, (this.counts.get(reason) ?? 0) + 1);
    if (reason !== 'silent') this.#summarize(handle, reason, environmentId);
    handle.close();
  }

  /** Takes the counts that the log does not have yet. */
  takeSummary(): CutSummary | undefined {
    const summary = this.#summary;
    this.#summary = undefined;
    return summary;
  }

  #summarize(handle: CutHandle, reason: CutReason, environmentId: number): void {
    const { count = 0, countsByReason = {} } = this.#summary ?? {};
    this.#summary = {
      count: count + 1,
      countsByReason: { ...countsByReason, [reason]: (countsByReason[reason] ?? 0) + 1 },
      last: {
        reason,
        address: callerNetwork(Buffer.from(handle.getRemoteAddressAsText()).toString('latin1')),
        ...(environmentId !== 0 && { environmentId }),
      },
    };
  }
}
