/** A button that makes a change by one call. While the call runs, and by a double click, no second call is sent. */
import { useState } from 'react';
import type { Call } from '../client/call.ts';
import { request, RequestFailed } from '../client/request.ts';
import { type Capability, useReach } from '../client/session.ts';
import { announce } from '../parts/announcer.tsx';
import { useCallOnce } from './use-call-once.ts';

export function ActionButton({
  children,
  call,
  capability,
  isMain = false,
  isDisabled = false,
  done,
  onDone,
}: {
  readonly children: string;
  readonly call: Call<unknown>;
  /** Capability that the user needs for it. Absent: to be signed in. */
  readonly capability?: Capability;
  readonly isMain?: boolean;
  /** True: the form is as it was saved. */
  readonly isDisabled?: boolean;
  /** Message after the call. */
  readonly done: string;
  readonly onDone: () => void;
}) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [failure, setFailure] = useState<RequestFailed>();
  const [isRunning, setIsRunning] = useState(false);
  const callOnce = useCallOnce();
  const isAllowed = capability === undefined || capabilities.includes(capability);
  const run = async (): Promise<void> => {
    setIsRunning(true);
    setFailure(undefined);
    try {
      // A DELETE is done once however often it is sent.
      await (call.method === 'delete' ? request : callOnce)(call, { workspaceId });
      announce(done);
      onDone();
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
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
        disabled={!isAllowed}
        // With `disabled`, the focus would fall to the page.
        aria-disabled={isDisabled || isRunning}
        title={isAllowed ? undefined : notAllowed}
        onClick={() => {
          if (!isDisabled && !isRunning) void run();
        }}
      >
        {children}
      </button>
      {failure && <span className="refusal">{failure.message}</span>}
    </>
  );
}
