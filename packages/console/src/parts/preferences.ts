/**
 * Preferences of this browser, and the only values that are stored here: the theme, keys of one letter, and the issues
 * that are muted.
 */
const THEME = 'sluice.theme';
const KEYS = 'sluice.keys';
const MUTED = 'sluice.muted';
/** The oldest are shown again beyond it. */
const MUTED_COUNT_MAX = 500;
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

/** The issue of a workspace, as it is muted. By a hash: its texts are an answer of the API, and those are not stored. */
export function muteKeyOf(
  workspaceId: number,
  { code, source, field }: { code: string; source: string; field: string | null },
): string {
  // Two hashes of 32 bits (FNV-1a, with two offsets): 500 muted issues do not hide one another by chance.
  let one = 0x811c9dc5;
  let other = 0x41c6ce57;
  for (const character of JSON.stringify([workspaceId, code, source, field])) {
    one = Math.imul(one ^ (character.codePointAt(0) ?? 0), 0x01000193);
    other = Math.imul(other ^ (character.codePointAt(0) ?? 0), 0x85ebca6b);
  }
  return [one, other].map((each) => (each >>> 0).toString(16)).join('.');
}

/** Keys of the muted issues, the oldest first. */
export const mutedIssues = (): ReadonlySet<string> =>
  new Set((stored(MUTED) ?? '').split(' ').filter((key) => key !== ''));

/** @returns the muted issues from now on. */
export function toggleMuted(key: string): ReadonlySet<string> {
  const muted = new Set(mutedIssues());
  if (!muted.delete(key)) muted.add(key);
  store(MUTED, [...muted].slice(-MUTED_COUNT_MAX).join(' '));
  return mutedIssues();
}
