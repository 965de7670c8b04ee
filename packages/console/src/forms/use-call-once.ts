/**
 * A call that must run only once, such as making a key.
 *
 * Sent again after an answer that was lost, it gets the first answer. Another call, or the same one after an answer,
 * has another key.
 */
import { useState } from 'react';
import type { Call } from '../client/call.ts';
import { RequestFailed } from '../client/request.ts';

/** As `request`. */
export type CallOnce = <Data>(
  call: Call<Data>,
  options?: { readonly workspaceId?: number },
) => Promise<Data>;

export function useCallOnce(): CallOnce {
  const [callOnce] = useState(createCallOnce);
  return callOnce;
}

/** For calls that outlive a screen. */
export function createCallOnce(): CallOnce {
  let unanswered: { readonly call: string; readonly key: string } | undefined;
  return async (call, { workspaceId } = {}) => {
    const asked = JSON.stringify([call.key, workspaceId]);
    const { key } = unanswered?.call === asked ? unanswered : { key: crypto.randomUUID() };
    unanswered = { call: asked, key };
    try {
      const answer = await call.send({ workspaceId, idempotencyKey: key });
      unanswered = undefined;
      return answer;
    } catch (error) {
      if (error instanceof RequestFailed && isSettled(error)) unanswered = undefined;
      throw error;
    }
  };
}

/** Whether the result of the call is known: not without an answer, nor by one of a proxy, nor while it still runs. */
const isSettled = ({ status, code }: RequestFailed): boolean =>
  status > 0 && status < 500 && code !== 'idempotency_key_in_use';
