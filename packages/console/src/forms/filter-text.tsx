/** A filter that is typed: it takes effect when the typing stops, or at once by Enter. */
import { useEffect, useState } from 'react';

/** Rest after which a typed filter takes effect. */
export const TYPED_AFTER_MS = 400;

export function FilterText({
  label,
  value = '',
  onChange,
}: {
  readonly label: string;
  readonly value?: string | undefined;
  readonly onChange: (text: string | undefined) => void;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(text.trim() || undefined), TYPED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      {label}{' '}
      <input
        type="search"
        data-filter=""
        spellCheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange(text.trim() || undefined);
        }}
      />
    </label>
  );
}
