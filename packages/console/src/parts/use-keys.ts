/**
 * Keys of the whole page. A key alone is ignored while text is typed, and if the user has switched such keys off;
 * `Ctrl K` always opens the palette.
 */
import { useEffect } from 'react';
import { areKeysOn } from './preferences.ts';
import { linkTo, readQuery } from '../routing/location.ts';
import { navigate } from '../routing/router.tsx';

export const KEYS = [
  ['Ctrl K', 'Go to an event, a person, a webhook, a screen'],
  ['g o', 'Overview'],
  ['g s', 'Start'],
  ['g l', 'Live'],
  ['g i', 'Issues'],
  ['g w', 'Webhooks'],
  ['g p', 'People'],
  ['g k', 'Keys'],
  ['g a', 'Audit log'],
  ['g b', 'Billing'],
  ['g f', 'Fleet'],
  ['j, k', 'Next row, row before'],
  ['Enter', 'Open the row'],
  ['Esc', 'Close the open row, or go up to the list'],
  ['.', 'Newer rows'],
  ['/', 'First filter'],
  ['t', 'Times in UTC, local, or of the account'],
  ['?', 'This list'],
] as const;

const SCREENS: Readonly<Record<string, string>> = {
  o: '/',
  s: '/start',
  l: '/live',
  i: '/issues',
  w: '/webhooks',
  p: '/people',
  k: '/keys',
  a: '/audit',
  b: '/billing',
  f: '/fleet',
};
/** How long the second key of two may take. */
const SECOND_KEY_MS = 1_000;

export function useKeys(show: (what: 'palette' | 'keys') => void): void {
  useEffect(() => {
    let goneToAtMs = -Infinity;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        show('palette');
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      if (!areKeysOn()) return;
      const isSecond = performance.now() - goneToAtMs < SECOND_KEY_MS;
      goneToAtMs = -Infinity;
      const screen = isSecond ? SCREENS[event.key] : undefined;
      if (screen !== undefined) navigate(linkTo(screen, readQuery(location.search, {})));
      else if (event.key === 'g') goneToAtMs = performance.now();
      else if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1);
      else if (event.key === 't') press('[data-zone]');
      else if (event.key === '.') press('[data-newer]');
      // Held down, the key that closes a dialog would close the row too, and then the screen.
      else if (event.key === 'Escape' && !event.repeat)
        press('[data-close]', OPEN_ROW, 'main .above a');
      else if (event.key === '?') show('keys');
      else if (event.key === '/') {
        const filter = document.querySelector<HTMLElement>('[data-filter]');
        if (!filter) return;
        event.preventDefault();
        filter.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [show]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.closest('input:not([type="checkbox"]), select, textarea, dialog') !== null ||
    target.isContentEditable);

function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const place = rows.indexOf(document.activeElement as HTMLElement);
  const next = place === -1 && step === -1 ? rows.at(-1) : rows[place + step];
  next?.focus();
}

const OPEN_ROW = 'main [data-row][aria-expanded="true"]';

/** The first of these that the screen has. */
function press(...selectors: readonly string[]): void {
  for (const selector of selectors) {
    const found = document.querySelector<HTMLElement>(selector);
    if (found) return found.click();
  }
}
