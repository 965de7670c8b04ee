/** Work that a form starts: while it runs its buttons are off, and a refusal of the API is shown beside it. */
import { useState } from 'react';
import { RequestFailed } from '../client/request.ts';

export interface Work {
  readonly isRunning: boolean;
  /** Why the last one was refused. */
  readonly problem: string | undefined;
  readonly run: (work: () => Promise<void>) => Promise<void>;
}

export function useWork(): Work {
  const [problem, setProblem] = useState<string>();
  const [isRunning, setIsRunning] = useState(false);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setIsRunning(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      setProblem(error.message);
    } finally {
      setIsRunning(false);
    }
  };
  return { isRunning, problem, run };
}
