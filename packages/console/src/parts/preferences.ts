/** Preferences of this browser, and the only values that are stored here: the theme, and keys of one letter. */
const THEME = 'sluice.theme';
const KEYS = 'sluice.keys';
const THEMES = ['system', 'light', 'dark'] as const;

export type Theme = (typeof THEMES)[number];

const stored = (name: string): string | null => localStorage.getItem(name);
const store = (name: string, value: string): void => localStorage.setItem(name, value);

export function currentTheme(): Theme {
  const kept = stored(THEME);
  return THEMES.find((theme) => theme === kept) ?? 'system';
}

export function applyTheme(theme: Theme = currentTheme()): void {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset['theme'];
  else dataset['theme'] = theme;
}

/** @returns the theme after this one. */
export function changeTheme(): Theme {
  const next = THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length] ?? 'system';
  store(THEME, next);
  applyTheme(next);
  return next;
}

/** False: the page ignores keys without a modifier. A user of speech input types them by each word (WCAG 2.1.4). */
export const areKeysOn = (): boolean => stored(KEYS) !== 'off';

/** @returns whether they are on from now on. */
export function toggleKeys(): boolean {
  store(KEYS, areKeysOn() ? 'off' : 'on');
  return areKeysOn();
}
