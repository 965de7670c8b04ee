/** States of a screen without data: it waits, the list is empty, or the read failed. */
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { FirstReadsContext, useFirstRead } from '../client/first-reads.ts';
import type { RequestFailed } from '../client/request.ts';
import type { Resource } from '../client/resource.ts';
import { ageText } from '../sentences/time-text.ts';
import { CopyButton } from './copy-button.tsx';
import { Link, useRouting } from '../routing/router.tsx';
import { useNow } from './time.tsx';

const SHOWN_AFTER_MS = 150;
const STALE_AFTER_MS = 60_000;
/** The bar for all data (`npm run bench -- console`). From here on, the parts that have data are drawn. */
const GATHERED_AFTER_MS_MAX = 1_000;

/** Lines as high as the later content. A fast answer does not show them. */
export function Waiting({ lines = 6 }: { readonly lines?: number }) {
  const [isShown, setIsShown] = useState(false);
  useFirstRead(true);
  useEffect(() => {
    const timer = setTimeout(() => setIsShown(true), SHOWN_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="waiting" role="status" aria-busy="true">
      <span className="unseen">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className={isShown ? 'skeleton' : 'skeleton unshown'} />
      ))}
    </div>
  );
}

/**
 * Draws a screen when all its first reads have an answer, so that no part of it moves another one. After a second the
 * parts that have data are drawn; later reads do not hide the screen again.
 */
export function Gathered({ children }: { readonly children: ReactNode }) {
  // Drawn at first, as a hidden field takes no focus; a screen that waits is hidden before the browser paints it.
  const [isHidden, setIsHidden] = useState(false);
  const waitingCount = useRef(0);
  const begin = useCallback(() => {
    waitingCount.current += 1;
    return () => {
      waitingCount.current -= 1;
      // The same rendering may take one part away and bring another that waits.
      queueMicrotask(() => {
        if (waitingCount.current === 0) setIsHidden(false);
      });
    };
  }, []);
  useLayoutEffect(() => {
    if (waitingCount.current === 0) return undefined;
    setIsHidden(true);
    const timer = setTimeout(() => setIsHidden(false), GATHERED_AFTER_MS_MAX);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      {isHidden && (
        <div className="cover">
          <Waiting />
        </div>
      )}
      <FirstReadsContext.Provider value={begin}>
        <div className={isHidden ? 'gathered unshown' : 'gathered'}>{children}</div>
      </FirstReadsContext.Provider>
    </>
  );
}

export function Empty({
  children,
  title,
}: {
  readonly title: string;
  readonly children?: ReactNode;
}) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failure({
  failure,
  onRetry,
}: {
  readonly failure: RequestFailed;
  readonly onRetry?: () => void;
}) {
  const nowMs = useNow();
  const [failedAtMs] = useState(Date.now);
  const leftMs = failedAtMs + (failure.retryAfterSeconds ?? 0) * 1000 - nowMs;
  return (
    <div className="failure" role="alert">
      <p>{failure.message}</p>
      {leftMs > 0 && <p>Try again {ageText(nowMs + leftMs, nowMs)}.</p>}
      <div className="actions">
        {onRetry && (
          <button type="button" onClick={onRetry} disabled={leftMs > 0}>
            Try again
          </button>
        )}
        {failure.requestId !== undefined && (
          <CopyButton text={failure.requestId} label={`Copy request id ${failure.requestId}`} />
        )}
      </div>
    </div>
  );
}

function WayBack() {
  const { up } = useRouting();
  if (!up) return null;
  return (
    <p className="above">
      <Link to={up.pattern}>{up.title({})}</Link>
    </p>
  );
}

/** Shows the data, or the reason for its absence; data that is old and cannot be read again is marked with its age. */
export function Shown<Data>({
  resource,
  isScreen = false,
  lines,
  waiting,
  children,
}: {
  readonly resource: Resource<Data> & { readonly reload: () => Promise<void> };
  /** True: without the data the screen has no title, so a failure has the way back. */
  readonly isScreen?: boolean;
  readonly lines?: number;
  /** In place of the lines: as high as the data. */
  readonly waiting?: ReactNode;
  readonly children: (data: Data) => ReactNode;
}) {
  const nowMs = useNow(5_000);
  const { data, failure, readAtMs, reload } = resource;
  if (data === undefined)
    return failure ? (
      <>
        {isScreen && <WayBack />}
        <Failure key={readAtMs} failure={failure} onRetry={() => void reload()} />
      </>
    ) : (
      (waiting ?? <Waiting {...(lines !== undefined && { lines })} />)
    );
  const isStale = failure !== undefined && nowMs - readAtMs > STALE_AFTER_MS;
  return (
    <>
      {isStale && (
        <p className="stale" role="status">
          {failure.message} The data below were read {ageText(readAtMs, nowMs)}.
        </p>
      )}
      {children(data)}
    </>
  );
}
