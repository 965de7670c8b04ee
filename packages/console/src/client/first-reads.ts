/**
 * Reads that a new screen waits for.
 *
 * Each is counted by the nearest `Gathered`, which draws the screen when all have an answer: sections that come one after
 * another would push each other away under the reader.
 */
import { createContext, useContext, useLayoutEffect } from 'react';

/** Counts a read that waits. @returns the function that ends it. */
export type BeginRead = () => () => void;

export const FirstReadsContext = createContext<BeginRead | undefined>(undefined);

/** @param isWaiting - the part that calls has no data yet, and no failure. */
export function useFirstRead(isWaiting: boolean): void {
  const begin = useContext(FirstReadsContext);
  // Before the browser paints: a part that comes with an answer is counted before the read of that answer ends.
  useLayoutEffect(() => (isWaiting ? begin?.() : undefined), [isWaiting, begin]);
}
