/**
 * All deliveries of a webhook in one scrolled list of any length.
 *
 * The log is numbered without gaps, so a place in the list is a number, and only visible rows are drawn and read. They
 * are read again with the newest deliveries, since their states change. New deliveries are announced and not pushed in.
 */
import { useCallback, useEffect, useRef, useState } from 'react';
import { get } from '../client/calls.ts';
import { request, RequestFailed } from '../client/request.ts';
import { useReach } from '../client/session.ts';
import { useSetQuery } from '../routing/router.tsx';
import { countText } from '../sentences/money-text.ts';
import type { Delivery, OfWebhook } from './delivery.ts';
import { DeliveryHead, DeliveryRow } from './delivery-rows.tsx';
import { drawnRows, LISTED_COUNT_MAX, pagesOf, ROW_HEIGHT_PX } from './visible-rows.ts';

const PAGE_COUNT = 50;
/** Kept in memory: 2,000 deliveries, so that an hour of scrolling takes no more than a minute of it. */
const KEPT_PAGES_MAX = 40;
/** Rows that only pass by under a held key are not read. */
const REST_MS = 80;

/** The API's position for the rows before a number. */
export const startBefore = (sequence: number): string =>
  btoa(`[${sequence}]`).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

export function LongList({
  webhookId,
  newest,
  readAtMs,
  at,
  openSequence,
  onOpen,
}: OfWebhook & {
  /** The number of the newest delivery, as it is now. */
  readonly newest: number;
  /** When the newest deliveries were read. */
  readonly readAtMs: number;
  /** The number at the top of the visible rows. Absent: the newest. */
  readonly at: number | undefined;
  readonly openSequence: string | undefined;
  readonly onOpen: (sequence: number) => void;
}) {
  const setQuery = useSetQuery();
  const [top, setTop] = useState(newest);
  const rowCount = Math.min(top, LISTED_COUNT_MAX);
  const scroller = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ scrollTop: 0, heightPx: 600 });
  const { rowOf, read, readAgain, failure } = usePages(webhookId, top);
  const shownReadAtMs = useRef(readAtMs);
  const range = drawnRows(place.scrollTop, place.heightPx, rowCount);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    if (at !== undefined) element.scrollTop = Math.max(0, top - at) * ROW_HEIGHT_PX;
    setPlace({ scrollTop: element.scrollTop, heightPx: element.clientHeight });
  }, [top]);
  useEffect(() => {
    const timer = setTimeout(() => {
      read(pagesOf(range, PAGE_COUNT));
      const first = Math.floor(place.scrollTop / ROW_HEIGHT_PX);
      // No step back: the history would be as long as the scrolling, and each step would scroll the window up.
      setQuery({ at: first === 0 ? undefined : String(top - first) });
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [range.first, range.end, top, read]);

  useEffect(() => {
    if (shownReadAtMs.current === readAtMs) return;
    shownReadAtMs.current = readAtMs;
    readAgain(pagesOf(range, PAGE_COUNT));
  }, [readAtMs, readAgain]);

  const rows = Array.from({ length: range.end - range.first }, (_, index) => range.first + index);
  return (
    <>
      <div className="row">
        <p className="faint">
          {countText(rowCount)} deliveries
          {rowCount < top && ' (the latest; filter to see older ones)'}
        </p>
        {newest > top && (
          <button type="button" data-newer="" onClick={() => setTop(newest)}>
            {countText(newest - top)} newer
          </button>
        )}
      </div>
      {failure && (
        <p className="refusal" role="alert">
          {failure}
        </p>
      )}
      <div
        className="scroller"
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label="All deliveries, newest first"
        onScroll={({ currentTarget }) =>
          setPlace({ scrollTop: currentTarget.scrollTop, heightPx: currentTarget.clientHeight })
        }
      >
        <table className="list rows-of-one-height" aria-rowcount={rowCount + 1}>
          <caption className="unseen">Deliveries, newest first</caption>
          <DeliveryHead />
          <tbody>
            <Gap rows={range.first} />
            {rows.map((row) => {
              const sequence = top - row;
              const delivery = rowOf(row);
              return delivery ? (
                <DeliveryRow
                  key={sequence}
                  delivery={delivery}
                  place={row + 2}
                  isOpen={openSequence === String(sequence)}
                  onOpen={onOpen}
                />
              ) : (
                <tr key={sequence} aria-rowindex={row + 2}>
                  <th scope="row" className="number">
                    {sequence}
                  </th>
                  <td colSpan={4} className="faint">
                    {delivery === null ? 'not kept any more' : '…'}
                  </td>
                </tr>
              );
            })}
            <Gap rows={rowCount - range.end} />
          </tbody>
        </table>
      </div>
    </>
  );
}

/** As high as the rows that are not drawn. */
function Gap({ rows }: { readonly rows: number }) {
  return rows <= 0 ? null : (
    <tr className="space" aria-hidden="true" style={{ height: `${rows * ROW_HEIGHT_PX}px` }} />
  );
}

interface Pages {
  /** Undefined: not read yet. Null: it is not there any more. */
  readonly rowOf: (row: number) => Delivery | null | undefined;
  readonly read: (pages: readonly number[]) => void;
  /** Their rows stay until the answer. Other pages are read again when they are seen. */
  readonly readAgain: (pages: readonly number[]) => void;
  readonly failure: string | undefined;
}

/** Pages below `top`, by their numbers; the latest that were asked for are kept. */
function usePages(webhookId: string, top: number): Pages {
  const { workspaceId } = useReach();
  const kept = useRef(noPages(top));
  const [, setChangeCount] = useState(0);
  const [failure, setFailure] = useState<string>();
  if (kept.current.top !== top) kept.current = noPages(top);
  const ask = useCallback(
    (page: number) => {
      const { pages, asked, old } = kept.current;
      if (asked.has(page)) return;
      asked.add(page);
      const start = startBefore(top - page * PAGE_COUNT + 1);
      request(
        get('/v1/reporting_webhooks/{webhook_id}/deliveries', {
          path: { webhook_id: webhookId },
          query: { limit: PAGE_COUNT, start },
        }),
        { workspaceId },
      ).then(
        ({ deliveries }) => {
          asked.delete(page);
          if (kept.current.pages !== pages) return;
          old.delete(page);
          pages.delete(page);
          pages.set(page, new Map(deliveries.map((each) => [each.sequence, each])));
          for (const oldest of pages.keys()) {
            if (pages.size <= KEPT_PAGES_MAX) break;
            pages.delete(oldest);
          }
          setFailure(undefined);
          setChangeCount((count) => count + 1);
        },
        (error: unknown) => {
          asked.delete(page);
          if (!(error instanceof RequestFailed)) throw error;
          setFailure(error.message);
        },
      );
    },
    [webhookId, top, workspaceId],
  );
  const read = useCallback(
    (wanted: readonly number[]) => {
      const { pages, old } = kept.current;
      for (const page of wanted) if (!pages.has(page) || old.has(page)) ask(page);
    },
    [ask],
  );
  const readAgain = useCallback(
    (wanted: readonly number[]) => {
      const { pages, old } = kept.current;
      for (const page of pages.keys()) old.add(page);
      for (const page of wanted) ask(page);
    },
    [ask],
  );
  const rowOf = (row: number): Delivery | null | undefined => {
    const page = kept.current.pages.get(Math.floor(row / PAGE_COUNT));
    return page && (page.get(top - row) ?? null);
  };
  return { rowOf, read, readAgain, failure };
}

/** Pages by their numbers. `asked`: they are read now. `old`: they were read, and may have changed. */
const noPages = (top: number) => ({
  top,
  pages: new Map<number, ReadonlyMap<number, Delivery>>(),
  asked: new Set<number>(),
  old: new Set<number>(),
});
