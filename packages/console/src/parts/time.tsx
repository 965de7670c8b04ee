/**
 * Times as all screens show them: UTC or local by the address, to the millisecond. The screens of billing have the zone
 * of the account.
 */
import { createContext, useContext, useEffect, useState } from 'react';
import { useRouting } from '../routing/router.tsx';
import { instantText } from '../sentences/time-text.ts';

const useIsLocal = (): boolean => useRouting().place.query['tz'] === 'local';

/** The only zone of the times within; undefined if they are in UTC or local, by the address. */
export const ZoneContext = createContext<string | undefined>(undefined);

/** For times in a sentence. */
export function useZone(): { readonly isLocal: boolean; readonly zone: string | undefined } {
  const zone = useContext(ZoneContext);
  return { zone, isLocal: useIsLocal() };
}

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
  const { zone, isLocal } = useZone();
  const text = instantText(atMs, { isLocal, zone, isWhole });
  const iso = new Date(atMs).toISOString();
  return (
    <time
      dateTime={iso}
      title={`${instantText(atMs, { isLocal: zone === undefined && !isLocal, isWhole })} · ${atMs}`}
    >
      {isShort ? text.slice(11) : text}
    </time>
  );
}
