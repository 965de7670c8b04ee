/** Copies a text. The button shows for a moment that it did. */
import { useEffect, useState } from 'react';
import { announce } from './announcer.tsx';

/** How long the page shows that a text was copied. */
export const SAID_FOR_MS = 1_500;

/** @returns false if the browser does not let the page write to the clipboard. */
export async function copyText(text: string): Promise<boolean> {
  const isCopied = await navigator.clipboard.writeText(text).then(
    () => true,
    () => copySelected(text),
  );
  announce(isCopied ? 'Copied' : 'Not copied: the browser does not allow it');
  return isCopied;
}

/**
 * The older way, by a selection. A frame of the portal has it without `allow="clipboard-write"` of the page around.
 */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'unseen';
  // Beside the focus, since an open dialog takes the selection.
  (before?.parentElement ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}

export function CopyButton({
  text,
  label = 'Copy',
  children = label,
}: {
  readonly text: string;
  /** Name of the copied text, for users of screen readers. */
  readonly label?: string;
  readonly children?: string;
}) {
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setIsCopied(false), SAID_FOR_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async (): Promise<void> => {
    setIsCopied(await copyText(text));
  };
  return (
    <button type="button" className="small" aria-label={label} onClick={() => void copy()}>
      {isCopied ? 'Copied' : children}
    </button>
  );
}

/** An id or a URL that is copied by its button. */
export function Copyable({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span className="copyable">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${what}`}>
        Copy
      </CopyButton>
    </span>
  );
}
