/** Times as all screens show them: UTC or local by the address, to the millisecond, with their age beside. */
import { useEffect, useState } from 'react';
import { useRouting } from '../routing/router.tsx';
import { instantText } from '../sentences/time-text.ts';

export const useIsLocal = (): boolean => useRouting().place.query['tz'] === 'local';

/** The present time, which moves on by itself. */
export function useNow(intervalMs = 1_000): number {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return nowMs;
}

/** @param atMs - Unix milliseconds; of a time that is known to the second, `isWhole`. */
export function Time({
  atMs,
  isWhole = false,
  isShort = false,
}: {
  readonly atMs: number;
  readonly isWhole?: boolean;
  /** Without the day. */
  readonly isShort?: boolean;
}) {
  const isLocal = useIsLocal();
  const text = instantText(atMs, { isLocal, isWhole });
  const iso = new Date(atMs).toISOString();
  return (
    <time dateTime={iso} title={`${instantText(atMs, { isLocal: !isLocal, isWhole })} · ${atMs}`}>
      {isShort ? text.slice(11) : text}
    </time>
  );
}
