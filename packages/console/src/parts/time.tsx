/**
 * Times as all screens show them: UTC or local by the address, to the millisecond, each to copy. The screens of billing
 * have the zone of the account.
 */
import { createContext, useContext, useEffect, useState } from 'react';
import { useRouting } from '../routing/router.tsx';
import { ageText, instantText } from '../sentences/time-text.ts';
import { copyText, SAID_FOR_MS } from './copy-button.tsx';

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

/**
 * A click, Enter or Space copies it as ISO 8601. Its tooltip has the other zone, the age, and Unix milliseconds.
 *
 * @param atMs - Unix milliseconds; of a time that is known to the second, `isWhole`.
 */
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
  const other = instantText(atMs, { isLocal: zone === undefined && !isLocal, isWhole });
  const title = `${other} · ${atMs} · copy as ISO 8601`;
  // Of the moment when the reader points at it: the screen may be hours old.
  const withAge = ({ currentTarget }: { readonly currentTarget: HTMLElement }): void => {
    currentTarget.title = `${ageText(atMs, Date.now())} · ${title}`;
  };
  const copy = async (shown: HTMLElement): Promise<void> => {
    if (!(await copyText(iso))) return;
    shown.dataset['copied'] = '';
    setTimeout(() => delete shown.dataset['copied'], SAID_FOR_MS);
  };
  return (
    <time
      dateTime={iso}
      // A button of HTML would be a block in the sentences that have times.
      role="button"
      tabIndex={0}
      title={title}
      onPointerEnter={withAge}
      onFocus={withAge}
      onClick={(event) => {
        // A row opens by a click on it.
        event.stopPropagation();
        void copy(event.currentTarget);
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        // Space would scroll.
        event.preventDefault();
        if (!event.repeat) void copy(event.currentTarget);
      }}
    >
      {isShort ? text.slice(11) : text}
    </time>
  );
}
