/**
 * Selected deliveries that are sent again, one after another. The work goes on if its screen is left, so it is kept here:
 * a screen that comes back knows which deliveries were sent, and that others are still being sent.
 */
import { useSyncExternalStore } from 'react';
import { RequestFailed } from '../client/request.ts';
import { type CallOnce, createCallOnce } from '../forms/use-call-once.ts';

export interface Resend {
  readonly isRunning: boolean;
  /** Numbers of the deliveries that were sent, until they are selected again. */
  readonly sent: ReadonlySet<number>;
  /** Why the last one was refused. */
  readonly problem: string | undefined;
}

const NONE: Resend = { isRunning: false, sent: new Set(), problem: undefined };

/** By their webhooks. A call whose answer was lost is repeated with its key, also from another screen. */
const resends = new Map<string, { resend: Resend; readonly callOnce: CallOnce }>();
const listeners = new Set<() => void>();

function change(webhook: string, to: Partial<Resend>): void {
  const { resend = NONE, callOnce = createCallOnce() } = resends.get(webhook) ?? {};
  resends.set(webhook, { resend: { ...resend, ...to }, callOnce });
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** @param webhook - its workspace and its id. */
export const useResend = (webhook: string): Resend =>
  useSyncExternalStore(subscribe, () => resends.get(webhook)?.resend ?? NONE);

/** The user has selected these: they may be sent once more. */
export function noteSelected(webhook: string, sequences: readonly number[]): void {
  const { sent } = resends.get(webhook)?.resend ?? NONE;
  const others = [...sent].filter((each) => !sequences.includes(each));
  change(webhook, { sent: new Set(others), problem: undefined });
}

/**
 * Sends them until one is refused.
 *
 * @param send - calls the API for one of them.
 * @returns true if all were sent.
 */
export async function resendAll(
  webhook: string,
  sequences: readonly number[],
  send: (callOnce: CallOnce, sequence: number) => Promise<unknown>,
): Promise<boolean> {
  change(webhook, { isRunning: true, problem: undefined });
  try {
    for (const sequence of sequences) {
      try {
        await send(resends.get(webhook)?.callOnce ?? createCallOnce(), sequence);
      } catch (error) {
        if (!(error instanceof RequestFailed)) throw error;
        change(webhook, { problem: `Delivery ${sequence}: ${error.message}` });
        return false;
      }
      const { sent } = resends.get(webhook)?.resend ?? NONE;
      change(webhook, { sent: new Set([...sent, sequence]) });
    }
    return true;
  } finally {
    change(webhook, { isRunning: false });
  }
}
