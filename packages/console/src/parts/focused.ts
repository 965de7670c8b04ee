/**
 * Attributes of a field that has the focus as soon as it is shown. A dialog gives it by `autofocus` when it opens; a field
 * that comes later asks for it, since browsers heed the attribute once for each page.
 */
export const FOCUSED = {
  autoFocus: true,
  ref: (element: HTMLElement | null): void => element?.focus(),
} as const;
