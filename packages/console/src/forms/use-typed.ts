/** A typed value that takes effect when the typing stops. */
import { useEffect, useState } from 'react';

/** Rest after which a typed value takes effect. */
const TYPED_AFTER_MS = 400;

/**
 * @param value - as it is in force; it replaces the typed text when it changes.
 * @param onChange - gets the text without blanks at its ends, or undefined if it is empty.
 * @param isComplete - false for a text that stays typed until there is more of it.
 */
export function useTyped(
  value: string,
  onChange: (text: string | undefined) => void,
  isComplete: (text: string) => boolean = () => true,
): { readonly text: string; readonly type: (text: string) => void; readonly end: () => void } {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const end = (): void => {
    if (isComplete(text)) onChange(text.trim() || undefined);
  };
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(end, TYPED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return { text, type: setText, end };
}
