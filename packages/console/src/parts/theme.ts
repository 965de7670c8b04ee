/** Light, dark, or as the system has it: kept in this browser. A preference, and the only thing that is kept here. */
const KEPT_AS = 'sluice.theme';
const THEMES = ['system', 'light', 'dark'] as const;

export type Theme = (typeof THEMES)[number];

export function currentTheme(): Theme {
  const kept = localStorage.getItem(KEPT_AS);
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
  localStorage.setItem(KEPT_AS, next);
  applyTheme(next);
  return next;
}
