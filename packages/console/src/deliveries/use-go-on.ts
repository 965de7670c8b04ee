/**
 * Goes on over empty pages of a filtered list of deliveries.
 *
 * The API looks through a bounded number of deliveries for a page, so an older one may match. After five pages the user
 * goes on by the button.
 */
import { useEffect, useRef } from 'react';
import { useSetQuery } from '../routing/router.tsx';

const PAGES_MAX = 5;

interface Page {
  readonly deliveries: readonly unknown[];
  readonly next: string;
}

/**
 * @param filter - of the list, without the start of the page.
 * @returns goes to a page by the user's wish, and on from there.
 */
export function useGoOn(
  page: Page | undefined,
  filter: string,
): (start: string | undefined) => void {
  const setQuery = useSetQuery();
  const passed = useRef({ filter, count: 0 });
  if (passed.current.filter !== filter) passed.current = { filter, count: 0 };
  const isShort = page !== undefined && page.deliveries.length === 0 && page.next !== '';
  const next = isShort ? page.next : undefined;
  useEffect(() => {
    if (next === undefined || passed.current.count >= PAGES_MAX) return;
    passed.current.count++;
    setQuery({ start: next });
  }, [next]);
  return (start) => {
    // The newest page stays, even if it is empty.
    passed.current = { filter, count: start === undefined ? PAGES_MAX : 0 };
    setQuery({ start }, false);
  };
}
