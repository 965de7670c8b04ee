/**
 * Attributes of a field that has the focus at once.
 *
 * A dialog gives the focus by `autofocus` when it opens. A field that comes later asks for it, since browsers heed the
 * attribute once for each page.
 */
export const FOCUSED = {
  autoFocus: true,
  ref: (element: HTMLElement | null): void => element?.focus(),
} as const;
