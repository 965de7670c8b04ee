/** A button that changes something by one call. While the call runs, and by a double click, nothing is sent twice. */
import { useRef, useState } from 'react';
import { request, RequestFailed, type RequestOptions } from '../client/request.ts';
import { type Capability, useSession } from '../client/session.ts';
import { announce } from '../parts/announcer.tsx';

export function ActionButton({
  children,
  path,
  method = 'POST',
  body,
  capability,
  isMain = false,
  done,
  onDone,
}: {
  readonly children: string;
  readonly path: string;
  readonly method?: RequestOptions['method'];
  readonly body?: unknown;
  /** What the user needs for it; absent: to be signed in. */
  readonly capability?: Capability;
  readonly isMain?: boolean;
  /** What is said afterwards. */
  readonly done: string;
  readonly onDone: () => void;
}) {
  const { workspaceId, capabilities, user } = useSession();
  const [failure, setFailure] = useState<RequestFailed>();
  const [isRunning, setIsRunning] = useState(false);
  const key = useRef(crypto.randomUUID());
  const isAllowed = capability === undefined || capabilities.includes(capability);
  const run = async (): Promise<void> => {
    setIsRunning(true);
    setFailure(undefined);
    try {
      await request(path, {
        ...(method && { method }),
        body,
        workspaceId,
        ...(method !== 'DELETE' && { idempotencyKey: key.current }),
      });
      // The next click is another call.
      key.current = crypto.randomUUID();
      announce(done);
      onDone();
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      if (error.status !== 0) key.current = crypto.randomUUID();
      setFailure(error);
      announce(error.message);
    } finally {
      setIsRunning(false);
    }
  };
  return (
    <>
      <button
        type="button"
        className={isMain ? 'main' : ''}
        disabled={!isAllowed || isRunning}
        title={isAllowed ? undefined : `Your role, ${user.role}, may not: ask an account_admin`}
        onClick={() => void run()}
      >
        {children}
      </button>
      {failure && <span className="refusal">{failure.message}</span>}
    </>
  );
}
